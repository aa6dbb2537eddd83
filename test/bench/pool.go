package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// A pooled is a mount with a shuffle pool, in which each turn has a job of its own.
type pooled struct {
	b    *bench
	jobs int
	sum  string // of the bytes that were read last
}

// poolRAM is the memory of its daemon.
const poolRAM = "7G"

func (b *bench) pool() *pooled {
	b.mount("--ram", poolRAM+"iB", "--pool-ram", "3GiB")
	return &pooled{b: b}
}

// stage makes a stage, and returns what removes its job: then its memory is free.
func (p *pooled) stage(spec string) (dir string, remove func()) {
	job := p.job()
	dir = job + "/stage"
	check(os.MkdirAll(dir, 0o700))
	check(os.WriteFile(dir+"/spec", []byte(spec), 0o600))
	return dir, func() {
		quiet("rm", "-r", job)
		p.b.awaitNoJobs()
	}
}

// job is the name of one that is not there yet.
func (p *pooled) job() string {
	p.jobs++
	return filepath.Join(p.b.mnt, "shuffle", fmt.Sprint("job", p.jobs))
}

// awaitNoJobs waits until the daemon has freed what jobs of its pool had in memory.
func (b *bench) awaitNoJobs() {
	check(within("jobs of the pool that were removed have no files", func() bool {
		table, err := os.ReadFile("/proc/self/mounts")
		check(err)
		return !strings.Contains(string(table), " "+b.dir+"/state/pool/")
	}))
}

// shuffle has test/mpi/shuffle work on a stage of that spec, and returns a figure of it.
func (p *pooled) shuffle(figure, spec, mode string, args ...string) func() float64 {
	return func() float64 {
		dir, remove := p.stage(spec)
		defer remove()
		return p.figure(figure, append(args, mode, dir)...)
	}
}

// plain has it work on files of the bench's tmpfs, as a program does that has no pool.
func (p *pooled) plain(figure, mode string, args ...string) func() float64 {
	return func() float64 {
		dir := filepath.Join(p.b.shm, "plain")
		check(os.Mkdir(dir, 0o700))
		defer os.RemoveAll(dir)
		return p.figure(figure, append(args, mode, dir)...)
	}
}

// figure is one that the program prints. Whichever process reads, the bytes are the same.
func (p *pooled) figure(name string, args ...string) float64 {
	out := p.b.tool("shuffle", args...)
	if sum := word(out, "sum"); strings.Trim(sum, "0") != "" { // it has read
		if p.sum != "" && sum != p.sum {
			check(fmt.Errorf("the sides read different bytes: %s after %s", sum, p.sum))
		}
		p.sum = sum
	}
	return value(out, name)
}

// poolWrites compares maps that are written and committed with files of a tmpfs.
func poolWrites(figure string, hashed bool, maps, size int, args ...string) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		p := b.pool()
		args := append([]string{"-m", strconv.Itoa(maps), "-b", strconv.Itoa(size)}, args...)
		ours = p.shuffle(figure, fmt.Sprintf("maps=%d copies=1", maps), "write", args...)
		if hashed {
			args = append([]string{"-x"}, args...)
		}
		return ours, p.plain(figure, "plain-write", args...)
	}
}

// square are the options for a shuffle of 2 GiB, of n maps and n parts.
func square(n int) []string {
	return []string{"-m", strconv.Itoa(n), "-r", strconv.Itoa(n), "-b", strconv.Itoa(2 << 30 / n)}
}

func squareSpec(n int) string { return fmt.Sprintf("maps=%d parts=%d copies=1", n, n) }

// poolShuffle compares a shuffle by the pool with one by plain files.
func poolShuffle(b *bench) (ours, theirs func() float64) {
	p := b.pool()
	return p.shuffle("seconds", squareSpec(64), "both", square(64)...), p.plain("seconds", "plain", square(64)...)
}

// poolSquares compares one of many maps and parts with one of few, and as many bytes.
func poolSquares(b *bench) (ours, theirs func() float64) {
	many := b.pool()
	few := &pooled{b: b, jobs: 1 << 20} // of longer maps, which have other bytes
	return many.shuffle("seconds", squareSpec(512), "both", square(512)...), few.shuffle("seconds", squareSpec(32), "both", square(32)...)
}

// poolExchange compares an all-to-all of four ranks by the pool and by MPI, by shared memory.
func poolExchange(b *bench) (ours, theirs func() float64) {
	p := b.pool()
	run := func(args ...string) float64 {
		line := append([]string{"4", filepath.Join(b.root, "test/mpi/bin/exchange"), "-s", strconv.Itoa(256 * mib)}, args...)
		out := output(filepath.Join(b.root, "test/mpi/run"), line...)
		if sum := word(out, "sum"); p.sum != "" && sum != p.sum {
			check(fmt.Errorf("the sides read different bytes: %s", out))
		} else {
			p.sum = sum
		}
		return value(out, "seconds")
	}
	ours = func() float64 {
		job := p.job()
		check(os.Mkdir(job, 0o700))
		defer b.awaitNoJobs()
		defer quiet("rm", "-r", job)
		return run("pool", job+"/stage")
	}
	return ours, func() float64 { return run("mpi") }
}

// poolMemory is how much more memory a daemon has, beside files of the pool and slabs,
// after a shuffle of 1,000 maps and as many parts than before.
func poolMemory(b *bench) float64 {
	p := b.pool()
	warm, remove := p.stage("maps=1 copies=1") // what the first job ever takes is not of the maps
	b.tool("shuffle", "-m", "1", "both", warm)
	remove()
	pid := b.status().PID
	before := resident(pid)
	dir, remove := p.stage("maps=1000 parts=1000 copies=1")
	defer remove()
	b.tool("shuffle", "-m", "1000", "-r", "1000", "-b", strconv.Itoa(mib), "both", dir)
	return resident(pid) - before
}

// poolCold compares shuffles of many and of few maps and parts that are on a disk when they
// are read, and in no cache. What a disk takes for them is said.
func poolCold(b *bench) (misses int) {
	disk := filepath.Join(b.dir, "nvme")
	b.mount("--ram", "7GiB", "--pool-ram", "3GiB", "--pool-nvme", disk+":8GiB")
	many, few := &pooled{b: b}, &pooled{b: b, jobs: 1 << 20}
	o := outcome{name: "pool, 2 GiB, 512 maps and 512 parts / 32 and 32, from a cold disk", target: 1.5, atMost: true}
	var taken float64
	turn := func(p *pooled, n int) float64 {
		dir, remove := p.stage(squareSpec(n) + " ack=durable")
		defer remove()
		eventually.Within(b.tb, time.Minute, "what the job before had is gone", func() bool { return onDisk(disk) <= 16<<20 })
		took := p.figure("seconds", append(square(n), "write", dir)...)
		taken = float64(onDisk(disk)) / (2 << 30)
		dropCaches()
		return took + p.figure("seconds", append(square(n), "read", dir)...)
	}
	for i := range *turns + 1 {
		m, f := turn(many, 512), turn(few, 32)
		if i > 0 {
			o.values = append(o.values, m/f)
			o.note = fmt.Sprintf("%.1f s against %.1f, the last time; %.3f bytes on the disk for each of the maps", m, f, taken)
		}
	}
	return missed(o)
}

// onDisk is the bytes that the files below a directory take, but for those that go meanwhile.
func onDisk(dir string) (bytes int64) {
	check(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		bytes += st.Blocks * 512
		return err
	}))
	return bytes
}
