package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// An other is a mount that a user would pick instead of ours: what is in a
// directory, through a file system of a program that keeps copies on the disk. It
// is used as its manual says, with the defaults but for where things are.
type other struct {
	name string
	// put has a directory's files in the mount, which starts with start.
	put func(o *mounted, files string)
}

// A mounted other has a directory of its own, with its store, its cache and its
// mount in it.
type mounted struct {
	bin, dir string
	mnt      string
	cmd      *exec.Cmd
	log      bytes.Buffer
	ended    chan error
}

var juicefs = other{"JuiceFS", func(o *mounted, files string) {
	meta := "sqlite3://" + o.dir + "/meta.db"
	o.run("juicefs", "format", "--storage", "file", "--bucket", o.dir+"/store/", meta, "bench")
	o.start("juicefs", "mount", "--no-usage-report", "--cache-dir", o.dir+"/cache", meta, o.mnt)
	quiet("cp", "-r", files+"/.", o.mnt)
}}

var rclone = other{"rclone", func(o *mounted, files string) {
	o.start("rclone", "mount", "--config", "", "--vfs-cache-mode", "full", "--cache-dir", o.dir+"/cache", files, o.mnt)
}}

// mountOther has what is in a directory in an other's mount, until the bench is reset.
func (b *bench) mountOther(by other, files string) (mnt string) {
	bin := filepath.Join(b.root, "build/others")
	output(filepath.Join(b.root, "test/bench/others"), bin)
	s := b.on("other")
	o := &mounted{bin: bin + "/bin", dir: s.TempDir()}
	o.mnt = o.dir + "/mnt"
	check(os.Mkdir(o.mnt, 0o700))
	s.Cleanup(o.end)
	by.put(o, files)
	return o.mnt
}

// command is a program of the other's, which finds its home in its directory.
func (o *mounted) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(o.bin, name), args...)
	cmd.Env = append(os.Environ(), "HOME="+o.dir)
	return cmd
}

func (o *mounted) run(name string, args ...string) {
	cmd := o.command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		check(fmt.Errorf("%s: %w\n%s", cmd, err, out))
	}
}

// start has the other's mount there.
func (o *mounted) start(name string, args ...string) {
	o.cmd = o.command(name, args...)
	o.cmd.Stdout, o.cmd.Stderr = &o.log, &o.log
	check(o.cmd.Start())
	o.ended = make(chan error, 1)
	go func() { o.ended <- o.cmd.Wait() }()
	check(within(o.cmd.String()+" mounts", func() bool {
		select {
		case err := <-o.ended:
			o.ended <- err
			check(fmt.Errorf("%s: %w\n%s", o.cmd, err, o.log.Bytes()))
		default:
		}
		return isFUSE(o.mnt)
	}))
}

// end unmounts, upon which the program ends.
func (o *mounted) end() {
	if o.cmd == nil {
		return
	}
	unix.Unmount(o.mnt, unix.MNT_DETACH)
	select {
	case <-o.ended:
	case <-time.After(time.Minute):
		o.cmd.Process.Kill()
		<-o.ended
	}
}

func isFUSE(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.FUSE_SUPER_MAGIC
}

// otherPass compares the first passes of processes over mappings of a batch, and of
// a file with the same bytes, as the kernel has it from the processes before or,
// dropped, without what it keeps of the mount's files; what the mount's program
// reads them from stays where it is.
func otherPass(by other, dropped bool) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		batch, file := b.one("--ram", "1GiB")
		files := filepath.Join(b.dir, "pass")
		check(os.MkdirAll(files, 0o700))
		quiet("cp", file, filepath.Join(files, "batch")) // a link would change the source's ctime
		var sum string
		side := func(path string) func() float64 {
			return func() float64 {
				read(path)
				if dropped {
					forget(path)
				}
				out := b.tool("pass", path)
				if s := word(out, "sum"); sum == "" {
					sum = s
				} else if s != sum {
					check(fmt.Errorf("the sides read different bytes: sums %s and %s", sum, s))
				}
				return value(out, "GB/s")
			}
		}
		return side(batch), side(filepath.Join(b.mountOther(by, files), "batch"))
	}
}

// forget has the kernel drop what it keeps of a file.
func forget(path string) {
	f, err := os.Open(path)
	check(err)
	defer f.Close()
	check(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// otherCycle compares opens, mappings and closes of files that were read before.
func otherCycle(by other) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		ours, _ = cycle(b)
		theirs = b.cycles(b.mountOther(by, filepath.Join(b.shm, "rank-0")))
		return ours, theirs
	}
}

// otherList compares listings of many names that the kernel has nothing of.
func otherList(by other) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		ours, local := b.lists(10_000)
		mnt := b.mountOther(by, local)
		return ours, func() float64 {
			dropCaches()
			return seconds(func() { quiet("ls", "-f", mnt) })
		}
	}
}
