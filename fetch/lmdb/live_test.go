package lmdb_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clib "github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
	"rankfs/meta"
)

// A child process is this test program with a role in its environment. It
// lives as long as its standard input is open.
const roleVar = "LMDB_TEST_ROLE"

func TestMain(m *testing.M) {
	role, path, _ := strings.Cut(os.Getenv(roleVar), ":")
	switch role {
	case "":
		code := m.Run()
		os.RemoveAll(benchPath())
		os.Exit(code)
	case "writer":
		write(path, 0)
	case "writer without locks":
		write(path, clib.NoLock)
	case "reader":
		hold(path)
	}
}

const (
	liveRecords = 48
	liveSize    = 5000 // two pages each
)

// generation is the value of a record after so many transactions.
func generation(g uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, g), liveSize/8)
}

// putAll makes one generation.
func putAll(txn *clib.Txn, g uint64) error {
	dbi, err := txn.OpenRoot(0)
	for i := range liveRecords {
		if err == nil {
			err = txn.Put(dbi, fmt.Appendf(nil, "%04d", i), generation(g), 0)
		}
	}
	return err
}

// write commits a generation for each line that it reads, and "N\n" lines of
// it say that N may be made without waiting.
func write(path string, flags uint) {
	env, err := clib.NewEnv()
	err = errors.Join(err, env.SetMapSize(1<<30), env.Open(path, clib.NoSync|flags, 0o644))
	in := bufio.NewScanner(os.Stdin)
	for g := uint64(1); err == nil && in.Scan(); {
		var n uint64
		_, err = fmt.Sscan(in.Text(), &n)
		for ; n > 0 && err == nil; n-- {
			err = env.Update(func(txn *clib.Txn) error { return putAll(txn, g) })
			g++
		}
		fmt.Println("done")
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	env.Close()
}

// hold holds a snapshot until it is killed.
func hold(path string) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "hold")
	s, err2 := lmdb.Open(path, "", new(lmdb.Holds))
	b, err3 := index.Create(filepath.Join(dir, "index"))
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	if _, err := s.Scan(ctx, b, func(int64, int64) {}); err != nil {
		panic(err)
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A child is a process in a role.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, role, path string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role+":"+path)
	c.cmd.Stderr = os.Stderr
	c.in, _ = c.cmd.StdinPipe()
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Wait()
	})
	return c
}

// commit has n transactions made; wait returns when they are.
func (c *child) commit(n int) { fmt.Fprintln(c.in, n) }

func (c *child) wait() {
	c.t.Helper()
	if !c.out.Scan() || c.out.Text() != "done" {
		c.t.Fatalf("child: %q", c.out.Text())
	}
}

func live(t testing.TB) string {
	t.Helper()
	path := t.TempDir()
	update(t, path, 0, func(txn *clib.Txn) error { return putAll(txn, 0) })
	return path
}

// generationAt is what a snapshot holds: transaction 1 made generation 0.
func generationAt(t testing.TB, x *index.Index) uint64 {
	t.Helper()
	var txn uint64
	if _, err := fmt.Sscanf(x.Fingerprint(), "lmdb txn=%d", &txn); err != nil {
		t.Fatal(err)
	}
	return txn - 1
}

// generationOf is the one that all bytes are of.
func generationOf(t testing.TB, b []byte) uint64 {
	t.Helper()
	g := binary.LittleEndian.Uint64(b)
	if !bytes.Equal(b, bytes.Repeat(generation(g), liveRecords)) {
		t.Fatalf("generation %d is mixed with others", g)
	}
	return g
}

// While a snapshot is held, commits are no change.
func TestHeldBesideWriter(t *testing.T) {
	path := live(t)
	holds := new(lmdb.Holds)
	s, x := serve(t, path, "", holds)
	w := start(t, "writer", path)
	for range 10 {
		w.commit(10)
		for range 20 {
			got, err := readAll(s, x)
			if err != nil {
				t.Fatal(err)
			}
			if g := generationOf(t, got); g != 0 {
				t.Fatalf("generation %d", g)
			}
			if err := s.Check(ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.wait()
	}

	// Another source on the same file sees the new state and shares the lock.
	s2, x2 := serve(t, path, "", holds)
	if err := errors.Join(s.Unheld(), s2.Unheld()); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(s2, x2); err != nil || generationOf(t, got) != 100 {
		t.Errorf("the second source: %v", err)
	}
	if err := s2.Close(); err != nil {
		t.Fatal(err)
	}
	w.commit(5)
	w.wait()
	if got, err := readAll(s, x); err != nil || generationOf(t, got) != 0 {
		t.Errorf("after the second source was closed: %v", err)
	}
	fingerprint, err := s.Fingerprint(ctx)
	if err != nil || fingerprint == x.Fingerprint() {
		t.Errorf("the fingerprint does not show the commits: %v", err)
	}
}

// A dataset can be indexed and attached while the writer never rests.
func TestScanBesideWriter(t *testing.T) {
	path := live(t)
	w := start(t, "writer", path)
	w.commit(200)
	holds := new(lmdb.Holds)
	for range 20 {
		s, x := serve(t, path, "", holds)
		got, err := readAll(s, x)
		if err != nil {
			t.Fatal(err)
		}
		if g := generationOf(t, got); g != generationAt(t, x) {
			t.Fatalf("generation %d from %s", g, x.Fingerprint())
		}
		s.Close()
	}
	w.wait()
}

// Without a hold, what is read is right or it is refused.
func TestUnheldBesideWriter(t *testing.T) {
	path := live(t)
	w := start(t, "writer", path)
	read, stale := 0, 0
	for range 40 {
		s, err := lmdb.Open(path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		x, err := attach(t, s)
		if err == nil {
			w.commit(8)
		}
		for err == nil {
			var got []byte
			if got, err = readAll(s, x); err == nil {
				if g := generationOf(t, got); g != generationAt(t, x) {
					t.Fatalf("generation %d from %s", g, x.Fingerprint())
				}
				read++
			}
		}
		w.wait()
		if !errors.Is(err, meta.ErrStale) {
			t.Fatal(err)
		}
		stale++
		s.Close()
	}
	t.Logf("%d requests served, %d refused", read, stale)
}

func TestStale(t *testing.T) {
	rows := []struct {
		name   string
		holds  *lmdb.Holds
		change func(t *testing.T, path string)
		says   string
	}{
		{"commit", nil, func(t *testing.T, path string) {
			update(t, path, 0, func(txn *clib.Txn) error { return putAll(txn, 1) })
		}, "transaction 1 became 2"},
		{"another file", nil, replace, "another file"},
		{"another file, held", new(lmdb.Holds), replace, "another file"},
		{"removed", nil, func(t *testing.T, path string) { os.Remove(filepath.Join(path, "data.mdb")) }, "it is gone"},
		{"copied over", nil, copyOver, "it was written to"},
		{"copied over, held", new(lmdb.Holds), copyOver, "not by a transaction"},
		{"made smaller", nil, shrink, "bytes became"},
		{"made smaller, held", new(lmdb.Holds), shrink, "bytes became"},
		{"emptied, held", new(lmdb.Holds), func(t *testing.T, path string) {
			os.Truncate(filepath.Join(path, "data.mdb"), 0)
		}, "meta pages are gone"},
		{"writer without locks, held", new(lmdb.Holds), func(t *testing.T, path string) {
			w := start(t, "writer without locks", path)
			w.commit(2)
			w.wait()
		}, "writer without locks"},
		{"lock file removed, held", new(lmdb.Holds), func(t *testing.T, path string) {
			os.Remove(filepath.Join(path, "lock.mdb"))
			w := start(t, "writer", path)
			w.commit(1)
			w.wait()
		}, "was removed or replaced"},
		{"locks dropped, held", new(lmdb.Holds), func(t *testing.T, path string) {
			// Closing any descriptor of the lock file drops the locks of the
			// process. Another one then takes us for dead.
			_, _ = os.ReadFile(filepath.Join(path, "lock.mdb"))
			r := start(t, "reader", path)
			r.wait()
			w := start(t, "writer", path)
			w.commit(1)
			w.wait()
		}, "does not list this process"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := live(t)
			s, x := serve(t, path, "", row.holds)
			if row.holds != nil && s.Unheld() != nil {
				t.Fatal(s.Unheld())
			}
			row.change(t, path)
			err := s.Check(ctx)
			if !errors.Is(err, meta.ErrStale) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("check: %v", err)
			}
			again, err := lmdb.Open(path, "", nil)
			if err != nil {
				return // the file is gone
			}
			defer again.Close()
			if err := again.Attach(ctx, x, x.Fingerprint()); err == nil {
				t.Error("attached to another version")
			}
		})
	}
}

// replace moves a database of the same making to the path.
func replace(t *testing.T, path string) {
	if err := os.Rename(filepath.Join(live(t), "data.mdb"), filepath.Join(path, "data.mdb")); err != nil {
		t.Fatal(err)
	}
}

func copyOver(t *testing.T, path string) {
	b, err := os.ReadFile(filepath.Join(live(t), "data.mdb"))
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "data.mdb"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func shrink(t *testing.T, path string) {
	name := filepath.Join(path, "data.mdb")
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()-4096)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A file truncated under a read is an error, not a fault.
func TestTruncatedUnderRead(t *testing.T) {
	for name, holds := range map[string]*lmdb.Holds{"unheld": nil, "held": new(lmdb.Holds)} {
		t.Run(name, func(t *testing.T) {
			path := live(t)
			s, x := serve(t, path, "", holds)
			if err := os.Truncate(filepath.Join(path, "data.mdb"), 8192); err != nil {
				t.Fatal(err)
			}
			if _, err := readAll(s, x); !errors.Is(err, meta.ErrStale) {
				t.Errorf("read: %v", err)
			}
			if err := s.Check(ctx); !errors.Is(err, meta.ErrStale) {
				t.Errorf("check: %v", err)
			}
		})
	}
}

// The slot of a daemon that was killed is freed by the next.
func TestKilledReader(t *testing.T) {
	path := live(t)
	dead := start(t, "reader", path)
	dead.wait()
	if err := dead.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = dead.cmd.Wait()
	s, _ := serve(t, path, "", new(lmdb.Holds))
	lines := s.Readers()
	if len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprint(os.Getpid())) {
		t.Errorf("readers: %q", lines)
	}
}

// Where nothing may be written, nothing is: the source is watched instead.
func TestNotHeld(t *testing.T) {
	readOnly := func(t *testing.T, path string) {
		if os.Getuid() != 0 {
			t.Fatal("run this as root: it mounts")
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	}
	rows := []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"read-only medium", readOnly, "list this process"},
		{"read-only medium without a lock file", func(t *testing.T, path string) {
			os.Remove(filepath.Join(path, "lock.mdb"))
			readOnly(t, path)
		}, "no lock file"},
		{"no lock file", func(t *testing.T, path string) { os.Remove(filepath.Join(path, "lock.mdb")) }, "no lock file"},
		{"lock file is a pipe", func(t *testing.T, path string) {
			os.Remove(filepath.Join(path, "lock.mdb"))
			if err := unix.Mkfifo(filepath.Join(path, "lock.mdb"), 0o666); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"lock file in use and of another format", func(t *testing.T, path string) {
			start(t, "reader", path).wait()
			f, err := os.OpenFile(filepath.Join(path, "lock.mdb"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("garbage!"), 0); err != nil {
				t.Fatal(err)
			}
		}, "open with locks"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := live(t)
			row.make(t, path)
			before, _ := os.ReadDir(path)
			s, x := serve(t, path, "", new(lmdb.Holds))
			if err := s.Unheld(); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("unheld: %v", err)
			}
			if got, err := readAll(s, x); err != nil || generationOf(t, got) != 0 {
				t.Errorf("read: %v", err)
			}
			after, _ := os.ReadDir(path)
			if len(before) != len(after) {
				t.Errorf("files before %v, after %v", before, after)
			}
		})
	}
}

func TestNotAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.mdb")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := lmdb.Open(path, "", nil); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := lmdb.Open(filepath.Join(path, "none"), "", nil); err == nil {
		t.Error("nothing there")
	}
}
