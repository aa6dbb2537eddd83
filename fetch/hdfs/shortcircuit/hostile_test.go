package shortcircuit_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta"
	"rankfs/test/eventually"
)

func TestReadAt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []byte{1, 2} {
		for _, per := range []int{64, 512, 4096, 1 << 20} {
			for _, size := range []int{1, 511, 512, 513, 65536, 3<<20 + 77} {
				x := newReplica(t, size, per, kind)
				c := newDatanode(t, pass(x.data, x.sums)).client(t)
				for i := range 10 {
					off := r.IntN(size)
					n := 1 + r.IntN(size-off)
					if i == 0 {
						off, n = 0, size
					}
					got := make([]byte, n)
					if err := read(c, block(1, size), got, off); err != nil {
						t.Fatalf("%d+%d of %d, sums of %d: %v", off, n, size, per, err)
					}
					if !bytes.Equal(got, x.content[off:off+n]) {
						t.Fatalf("%d+%d of %d, sums of %d: other bytes", off, n, size, per)
					}
				}
			}
		}
	}
}

// Every byte of a block is under a checksum that is looked at.
func TestEveryByteIsChecked(t *testing.T) {
	const size = 3*512 + 100
	x := newReplica(t, size, 512, 2)
	c := newDatanode(t, pass(x.data, x.sums)).client(t)
	for wrong := range size {
		bad := bytes.Clone(x.content)
		bad[wrong] ^= 1 << (wrong % 8)
		x.write(x.data, bad)
		if err := read(c, block(uint64(wrong), size), make([]byte, 1), wrong); !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("byte %d is wrong: %v", wrong, err)
		}
		eventually.True(t, "its files are closed", func() bool { return c.Snapshot().Files == 0 }) // or too many wait for that
	}
}

// A large read is divided among processors, and each share checked.
func TestLargeRead(t *testing.T) {
	const size = 7<<20 + 100
	x := newReplica(t, size, 512, 2)
	c := newDatanode(t, pass(x.data, x.sums)).client(t)
	got := make([]byte, size-700)
	if err := read(c, block(size, size), got, 700); err != nil || !bytes.Equal(got, x.content[700:]) {
		t.Fatalf("other bytes, or %v", err)
	}
	for _, wrong := range []int{0, 2 << 20, 5<<20 - 1, size - 1} {
		bad := bytes.Clone(x.content)
		bad[wrong] ^= 1
		x.write(x.data, bad)
		if err := read(c, block(uint64(wrong), size), make([]byte, size), 0); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("byte %d is wrong: %v", wrong, err)
		}
	}
}

// Memory that cannot be had is the caller's to deal with, whichever processor finds it so.
func TestLargeReadWithoutMemory(t *testing.T) {
	const size = 7 << 20
	x := newReplica(t, size, 512, 2)
	c := newDatanode(t, pass(x.data, x.sums)).client(t)
	empty, err := os.Create(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	gone, err := unix.Mmap(int(empty.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if _, fault := recover().(interface{ Addr() uintptr }); !fault {
			t.Error("the caller learns of no fault")
		}
	}()
	t.Error(read(c, block(1, size), gone[:size-1], 1)) // its first bytes are copied
}

func TestHostileDatanode(t *testing.T) {
	const size = 100000
	x := newReplica(t, size, 512, 2)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	short := newReplica(t, size-1, 512, 2)
	null := newReplica(t, size, 512, 0)
	odd := newReplica(t, size, 63, 2)
	few := filepath.Join(t.TempDir(), "blk_1_1.meta")
	x.write(few, []byte{0, 1, 2, 0, 0, 2, 0})
	other := newReplica(t, size+1, 512, 2)
	others := namedFor(2, other.sums)
	older := filepath.Join(t.TempDir(), "blk_1_0.meta")
	if err := os.Rename(newReplica(t, size, 512, 2).sums, older); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		answer func(*net.UnixConn)
		want   string
	}{
		{"hangs up", func(*net.UnixConn) {}, "ask"},
		{"refuses the token", func(c *net.UnixConn) { heard(c); c.Write(status(named("ERROR_ACCESS_TOKEN"), "token ended")) }, "token ended"},
		{"refuses the block", func(c *net.UnixConn) { heard(c); c.Write(status(named("ERROR"), "no such block")) }, "no such block"},
		{"cannot", func(c *net.UnixConn) { heard(c); c.Write(status(named("ERROR_UNSUPPORTED"), "not compiled in")) }, "not compiled in"},
		{"an answer without end", func(c *net.UnixConn) { heard(c); c.Write(protowire.AppendVarint(nil, 1<<40)) }, "is corrupt"},
		{"no message", func(c *net.UnixConn) { heard(c); c.Write([]byte{3, 255, 255, 255}) }, "is corrupt"},
		{"no files", func(c *net.UnixConn) { heard(c); c.Write(append(status(named("SUCCESS"), ""), 0)) }, "0 files"},
		{"one file", pass(x.data), "1 files"},
		{"three files", pass(x.data, x.sums, x.sums), "3 files"},
		{"a pipe", pass(pipe, x.sums), "it is no file"},
		{"a folder", pass(t.TempDir(), x.sums), "it is no file"},
		{"the other way round", pass(x.sums, x.data), "is corrupt"},
		{"a short block", pass(short.data, short.sums), "of 100000"},
		{"few checksums", pass(x.data, few), "is corrupt"},
		{"an older generation of the block", pass(x.data, older), "it is that of blk_1_0.meta"},
		{"another block", pass(other.data, others), "it is that of blk_2_1.meta"},
		{"another block's bytes", pass(other.data, x.sums), "is corrupt"},
		{"no checksums", pass(null.data, null.sums), "kind 0"},
		{"odd checksums", pass(odd.data, odd.sums), "63 bytes"},
		{"an empty file of checksums", pass(x.data, "/dev/null"), "it is no file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			d := newDatanode(t, row.answer)
			c := d.client(t)
			err := read(c, block(1, size), make([]byte, size), 0)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			c.Close()
			d.listen.Close()
			awaitDescriptors(t, before)
		})
	}
}

// Where this process may open no more files, or one, it takes none and says so,
// and takes them when it may.
func TestDescriptorsUsedUp(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	p := make([]byte, 1000)
	for spare := range 2 {
		before := descriptors(t)
		d := newDatanode(t, passAfter(func() {
			free, err := unix.Dup(0)
			if err != nil {
				panic(err)
			}
			unix.Close(free)
			unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free + spare), Max: was.Max})
		}, x.data, x.sums))
		c := shortcircuit.New(shortcircuit.Config{Path: d.socket, BackOff: time.Nanosecond})
		err := read(c, block(1, 1000), p, 0)
		unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("with %d to spare: %v", spare, err)
		}
		eventually.True(t, "what came is closed", func() bool { return c.Snapshot().Files == 0 })
		d.listen.Close()
		d.start(pass(x.data, x.sums))
		if err := read(c, block(1, 1000), p, 0); err != nil || !bytes.Equal(p, x.content) {
			t.Errorf("when it may again: %v", err)
		}
		c.Close()
		d.listen.Close()
		awaitDescriptors(t, before)
	}
}

// awaitDescriptors waits until no more descriptors are open than before.
func awaitDescriptors(t *testing.T, before int) {
	t.Helper()
	eventually.True(t, "no descriptor is left", func() bool { return descriptors(t) <= before })
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A socket that is of no use is left alone for a while, and each other block too.
func TestUselessSocketRests(t *testing.T) {
	d := newDatanode(t, func(c *net.UnixConn) { heard(c); c.Write(status(named("ERROR_UNSUPPORTED"), "not compiled in")) })
	c := d.client(t)
	for id := range uint64(5) {
		if err := read(c, block(id, 1), make([]byte, 1), 0); err == nil {
			t.Fatal("read")
		}
	}
	if n := d.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if cause := c.Snapshot().Cause; !strings.Contains(cause, "not compiled in") {
		t.Errorf("the cause is %q", cause)
	}
}

func TestSocketOfAnother(t *testing.T) {
	x := newReplica(t, 10, 512, 2)
	for _, row := range []struct {
		name   string
		change func(d *datanode) error
		want   string
	}{
		{"all may write the folder", func(d *datanode) error { return os.Chmod(filepath.Dir(d.socket), 0o777) }, "written by all"},
		{"a group may write the folder", func(d *datanode) error {
			return errors.Join(os.Chown(filepath.Dir(d.socket), 0, 12345), os.Chmod(filepath.Dir(d.socket), 0o775))
		}, "written by group 12345"},
		{"another's folder", func(d *datanode) error { return os.Chown(filepath.Dir(d.socket), 12345, 0) }, "belongs to user 12345"},
		{"no socket", func(d *datanode) error { return os.Remove(d.socket) }, "there is no socket"},
		{"a file", func(d *datanode) error {
			return errors.Join(os.Remove(d.socket), os.WriteFile(d.socket, nil, 0o600))
		}, "is no socket"},
		{"a link", func(d *datanode) error {
			return errors.Join(os.Rename(d.socket, d.socket+".0"), os.Symlink(d.socket+".0", d.socket))
		}, "is no socket"},
		{"no process listens", func(d *datanode) error {
			d.listen.(*net.UnixListener).SetUnlinkOnClose(false)
			return d.listen.Close()
		}, "no datanode answers"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDatanode(t, pass(x.data, x.sums))
			if err := row.change(d); err != nil {
				t.Fatal(err)
			}
			if err := read(d.client(t), block(1, 10), make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// A datanode that is stopped holds no reader up for long, and a reader that gives up
// says nothing about it.
func TestSilentDatanode(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	d := newDatanode(t, func(c *net.UnixConn) { heard(c); <-release })
	c := shortcircuit.New(shortcircuit.Config{Path: d.socket, Timeout: 50 * time.Millisecond, BackOff: time.Hour})
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Open(ctx, block(1, 1)); err == nil {
		t.Fatal("open")
	}
	if cause := c.Snapshot().Cause; cause != "" {
		t.Errorf("after a reader gave up: %s", cause)
	}
	if _, err := c.Open(t.Context(), block(1, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if c.Snapshot().Cause == "" {
		t.Error("nothing is said of it")
	}
}
