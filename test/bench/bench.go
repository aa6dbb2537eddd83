package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A bench is where measures are taken: the ground, and at most one mount, which goes with it,
// as does all else that a measure has begun.
type bench struct {
	ground
	mnt    string
	home   *daemon.Place // of the daemon that mounts there
	node   *daemon.Place // the same, of one that was started; nil: none was
	hdfs   *hadoop       // nil until a measure needs it
	tb     *fakeTB       // of what uses what tests use
	served []func()
	closed sync.Once
}

// A failure ends the run: a benchmark that goes on after an error lies.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// within waits for a minute at most.
func within(what string, is func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	not := errors.New(what + ": not yet")
	return eventually.Until(ctx, func() error {
		if is() {
			return nil
		}
		return not
	})
}

func newBench(on string) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(on, "rankfs-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{ground: ground{root: root, dir: dir, shm: filepath.Join(dir, "shm")}}
	b.home = daemon.At(b.on("bench"), filepath.Join(root, "bin/rankfs"), dir)
	b.mnt = b.home.Mount()
	if err := os.Mkdir(b.shm, 0755); err != nil {
		return nil, err
	}
	return b, unix.Mount("bench", b.shm, "tmpfs", 0, "huge=within_size")
}

func (b *bench) close() {
	b.closed.Do(func() {
		if b.node != nil && b.node.Running() { // a reader that was interrupted may have it open
			b.node.Rankfs("umount", "--lazy", b.mnt)
			b.node.AwaitEnd()
		}
		b.reset()
		if b.hdfs != nil {
			b.hdfs.close()
			b.hdfs = nil
		}
		for _, end := range b.served {
			end()
		}
		unix.Unmount(b.shm, unix.MNT_DETACH)
		os.RemoveAll(b.dir)
	})
}

// closeOnSignal has a bench that is interrupted leave nothing behind.
func (b *bench) closeOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		b.close()
		os.Exit(1)
	}()
}

// reset unmounts, and forgets the state.
func (b *bench) reset() {
	for _, job := range glob(filepath.Join(b.mnt, "shuffle/*")) { // of a turn that failed
		os.RemoveAll(job)
	}
	b.node = nil
	if s := b.tb; s != nil {
		b.tb = nil
		s.end()
	}
	os.RemoveAll(filepath.Join(b.dir, "state"))
	os.RemoveAll(filepath.Join(b.dir, "nvme"))
	for _, f := range glob(filepath.Join(b.shm, "*")) {
		os.RemoveAll(f)
	}
}

func glob(pattern string) []string {
	found, err := filepath.Glob(pattern)
	check(err)
	return found
}

// output runs a program and returns what it printed.
func output(name string, args ...string) string {
	return printed(exec.Command(name, args...))
}

func printed(cmd *exec.Cmd) string {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		check(fmt.Errorf("%s: %w\n%s", cmd, err, errs.Bytes()))
	}
	return string(out)
}

func (b *bench) rankfs(args ...string) string {
	return output(filepath.Join(b.root, "bin/rankfs"), append(args, "--run", filepath.Join(b.dir, "run"))...)
}

// mount mounts with the given options, until the bench is reset.
func (b *bench) mount(options ...string) {
	if b.node == nil {
		b.node = b.home.For(b.on("mount"))
	}
	b.node.Start(options...)
}

func (b *bench) umount() { check(b.node.Stop()) }

// create registers a dataset and returns its directory.
func (b *bench) create(name, source string, options ...string) string {
	b.rankfs(append([]string{"dataset", "create", name, "--source", source}, options...)...)
	return filepath.Join(b.mnt, "datasets", name)
}

// A status is what is needed here of what rankfs status --json says.
type status struct {
	PID      int `json:"pid"`
	Counters struct {
		Fills         uint64  `json:"fills"`
		Choices       uint64  `json:"cache_plans"`
		ChoiceSeconds float64 `json:"cache_plan_seconds"`
		WaitSeconds   float64 `json:"wait_seconds"`
	} `json:"counters"`
	Tiers []struct {
		Used int64 `json:"used"`
	} `json:"tiers"`
}

func (b *bench) status() (s status) {
	b.node.Status(&s)
	return s
}

// value finds key=VALUE in the last line that has it.
func value(text, key string) float64 {
	at := strings.LastIndex(text, " "+key+"=")
	if at < 0 {
		check(fmt.Errorf("no %s= in %q", key, text))
	}
	field := strings.Fields(text[at+len(key)+2:])[0]
	v, err := strconv.ParseFloat(field, 64)
	check(err)
	return v
}

// word is value for what is not a number.
func word(text, key string) string {
	at := strings.LastIndex(text, " "+key+"=")
	if at < 0 {
		check(fmt.Errorf("no %s= in %q", key, text))
	}
	return strings.Fields(text[at+len(key)+2:])[0]
}

// seconds times a command, or whatever f does.
func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

// read reads files through, so that they are in memory and, below a mount,
// ready.
func read(files ...string) { quiet("cat", append(files, "/dev/null")...) }

// quiet runs a program whose output, to /dev/null, does not matter.
func quiet(name string, args ...string) { quietly(exec.Command(name, args...)) }

func quietly(cmd *exec.Cmd) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		check(fmt.Errorf("%s: %w\n%s", cmd, err, errs.Bytes()))
	}
}

func dropCaches() {
	unix.Sync()
	check(os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
}

// resident is the memory of a process but for shared memory, which is where
// the slabs are.
func resident(pid int) float64 { return ofProcess(pid, "VmRSS") - ofProcess(pid, "RssShmem") }
