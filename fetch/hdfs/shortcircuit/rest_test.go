package shortcircuit_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta"
)

// A record is what a client has logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// lines counts the lines of a level.
func (r *record) lines(level slog.Level) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), "level="+level.String())
}

func refuse(code protoreflect.Name, words func() string) func(*net.UnixConn) {
	return func(c *net.UnixConn) {
		if heard(c) {
			c.Write(status(named("ERROR"+code), words()))
		}
	}
}

func words(s string) func() string { return func() string { return s } }

// spoiled is a replica with other bytes than its checksums are of.
func spoiled(t *testing.T) replica {
	t.Helper()
	bad := newReplica(t, 1000, 512, 2)
	bad.write(bad.data, append(bytes.Clone(bad.content[1:]), 'x'))
	return bad
}

// However often and in whatever words a datanode refuses, it is said once, and once
// more after it has passed files meanwhile.
func TestSaidOnce(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	bad := spoiled(t)
	var n atomic.Int64
	reasons := func() string { return fmt.Sprint("for reason ", n.Add(1)) }
	const socket = "the socket"
	for name, refused := range map[string]func(*net.UnixConn){
		socket:                 refuse("_UNSUPPORTED", reasons),
		"a block":              refuse("", reasons),
		"a block by its bytes": pass(bad.data, bad.sums),
	} {
		t.Run(name, func(t *testing.T) {
			var agreed atomic.Bool
			d := newDatanode(t, func(c *net.UnixConn) {
				if agreed.Load() {
					pass(x.data, x.sums)(c)
					return
				}
				refused(c)
			})
			said := new(record)
			c := shortcircuit.New(shortcircuit.Config{Path: d.socket, BackOff: time.Nanosecond, Log: slog.New(slog.NewTextHandler(said, nil))})
			defer c.Close()
			for run := 1; run < 4; run++ {
				agreed.Store(false)
				var work sync.WaitGroup
				for range 4 {
					work.Go(func() {
						for range 5 {
							if err := read(c, block(1, 1000), make([]byte, 1000), 0); err == nil {
								t.Error("read")
							}
						}
					})
				}
				work.Wait()
				if cause := c.Snapshot().Cause; name == socket && !strings.Contains(cause, "for reason") {
					t.Errorf("the cause is %q", cause)
				}
				if warned, informed := said.lines(slog.LevelWarn), said.lines(slog.LevelInfo); warned != run || informed != run-1 {
					t.Fatalf("in run %d the log has %d refusals and %d ends of them:\n%s", run, warned, informed, &said.text)
				}
				agreed.Store(true)
				if err := read(c, block(1, 1000), make([]byte, 1000), 0); err != nil {
					t.Fatal(err)
				}
				if s := c.Snapshot(); s.Cause != "" || s.Refused != 0 {
					t.Errorf("afterwards: %+v", s)
				}
				// So that the next run asks.
				if err := os.Chmod(x.data, 0o640+os.FileMode(run)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A refusal that no read has met for a while is said to have ended before the next is said to begin.
func TestSaidOfForgotten(t *testing.T) {
	d := newDatanode(t, refuse("", words("no such block")))
	said := new(record)
	c := shortcircuit.New(shortcircuit.Config{Path: d.socket, BackOff: time.Nanosecond, Age: time.Nanosecond, Log: slog.New(slog.NewTextHandler(said, nil))})
	defer c.Close()
	for id := range 3 {
		if err := read(c, block(uint64(id), 1000), make([]byte, 1000), 0); err == nil {
			t.Fatal("read")
		}
		if begun, ended := said.lines(slog.LevelWarn), said.lines(slog.LevelInfo); begun != id+1 || ended != id {
			t.Errorf("after block %d the log has %d beginnings and %d ends:\n%s", id, begun, ended, &said.text)
		}
	}
}

// A socket, and a block, that is suspended is tried at once when another socket is in its
// place: another datanode may do better.
func TestSocketMadeAnew(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	for _, row := range []struct {
		name   string
		answer func(*net.UnixConn)
		change func(d *datanode) error
	}{
		{"cannot", refuse("_UNSUPPORTED", words("not compiled in")), nil},
		{"refuses the block", refuse("", words("no such block")), nil},
		{"no process listens", pass(x.data, x.sums), func(d *datanode) error {
			d.listen.(*net.UnixListener).SetUnlinkOnClose(false)
			return d.listen.Close()
		}},
		{"no socket", pass(x.data, x.sums), func(d *datanode) error { return d.listen.Close() }},
		{"a file", pass(x.data, x.sums), func(d *datanode) error {
			return errors.Join(os.Remove(d.socket), os.WriteFile(d.socket, nil, 0o600))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDatanode(t, row.answer)
			if row.change != nil {
				if err := row.change(d); err != nil {
					t.Fatal(err)
				}
			}
			c, p := d.client(t), make([]byte, 1000) // which has it rest for an hour
			for range 3 {
				if err := read(c, block(1, 1000), p, 0); err == nil {
					t.Fatal("read")
				}
			}
			if n := d.asked.Load(); n > 1 {
				t.Errorf("asked %d times", n)
			}
			if c.Snapshot().Cause == "" {
				t.Error("nothing is said of it")
			}
			d.listen.Close()
			os.Remove(d.socket)
			d.start(pass(x.data, x.sums))
			if err := read(c, block(1, 1000), p, 0); err != nil || !bytes.Equal(p, x.content) {
				t.Errorf("by the new socket: %v", err)
			}
			if s := c.Snapshot(); s.Cause != "" || s.Refused != 0 {
				t.Errorf("afterwards: %+v", s)
			}
		})
	}
}

// A block that is refused, or whose files cannot be read, is left alone for a while; it
// says nothing of the others.
func TestRefusedBlock(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	bad := spoiled(t)
	for _, row := range []struct {
		name   string
		answer func(*net.UnixConn)
		says   string
	}{
		{"refused", refuse("", words("no such block")), "no such block"},
		{"other bytes", pass(bad.data, bad.sums), "does not match"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var agreed atomic.Bool
			d := newDatanode(t, func(c *net.UnixConn) {
				if agreed.Load() {
					pass(x.data, x.sums)(c)
					return
				}
				row.answer(c)
			})
			c := d.client(t)
			for range 5 {
				f, err := c.Open(t.Context(), block(1, 1000))
				if err == nil {
					err = f.ReadAt(make([]byte, 1000), 0)
					f.Fail(err)
					f.Release()
				}
				if err == nil || !strings.Contains(err.Error(), row.says) {
					t.Fatalf("got %v", err)
				}
			}
			if n := d.asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			agreed.Store(true)
			if err := read(c, block(2, 1000), make([]byte, 1000), 0); err != nil {
				t.Errorf("another block: %v", err)
			}
			if s := c.Snapshot(); s.Refused != 1 || !strings.Contains(s.Cause, row.says) {
				t.Errorf("the client says %+v", s)
			}
		})
	}
}

// A block whose bytes are wrong in one place stays refused though a file that was asked for
// before that was seen is right in another. Others are not served that file.
func TestRefusedBeforeItIsPassed(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	bad := bytes.Clone(x.content)
	bad[999] ^= 1
	x.write(x.data, bad)
	var asked atomic.Int64
	wait, begun := make(chan struct{}), make(chan struct{})
	d := newDatanode(t, func(c *net.UnixConn) {
		if asked.Add(1) == 1 {
			passAfter(func() { close(begun); <-wait }, x.data, x.sums)(c)
			return
		}
		pass(x.data, x.sums)(c)
	})
	c := d.client(t)
	late := make(chan error, 1)
	go func() { late <- read(c, block(1, 1000), make([]byte, 512), 0) }()
	<-begun
	if err := read(c, block(1, 1000), make([]byte, 488), 512); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("the wrong bytes: %v", err)
	}
	close(wait)
	if err := <-late; err != nil {
		t.Errorf("the right bytes: %v", err)
	}
	if s := c.Snapshot(); s.Refused != 1 || !strings.Contains(s.Cause, "does not match") {
		t.Errorf("the client says %+v", s)
	}
	if err := read(c, block(1, 1000), make([]byte, 512), 0); err == nil {
		t.Error("a refused block is read by file")
	}
}

// What was wrong with a socket is told for as long as no reader reads anything else, and no
// longer once readers have gone on to another datanode: how it is now is not known.
func TestSocketThatIsNotAskedAnyMore(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	d := newDatanode(t, pass(x.data, x.sums))
	const rest = 10 * time.Millisecond
	c := shortcircuit.New(shortcircuit.Config{Path: strings.ReplaceAll(d.socket, "9866", "_PORT"), BackOff: rest})
	defer c.Close()
	if c.Snapshot().Asked {
		t.Error("something was asked for already")
	}
	gone := block(1, 1000)
	gone.Addr = "127.0.0.1:9867"
	if err := read(c, gone, make([]byte, 1000), 0); err == nil {
		t.Fatal("read")
	}
	time.Sleep(5 * rest)
	if s := c.Snapshot(); !s.Asked || !strings.Contains(s.Cause, "dn.9867") {
		t.Errorf("after a while: %+v", s)
	}
	if err := read(c, block(2, 1000), make([]byte, 1000), 0); err != nil {
		t.Fatal(err)
	}
	if cause := c.Snapshot().Cause; cause != "" {
		t.Errorf("beside another datanode: %s", cause)
	}
}

// A block whose token has ended is asked for at once with the next token.
func TestRefusedToken(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	var agreed atomic.Bool
	refused := refuse("_ACCESS_TOKEN", words("expired"))
	d := newDatanode(t, func(c *net.UnixConn) {
		if agreed.Load() {
			pass(x.data, x.sums)(c)
			return
		}
		refused(c)
	})
	c := d.client(t)
	if err := read(c, block(1, 1000), make([]byte, 1000), 0); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("got %v", err)
	}
	if s := c.Snapshot(); s.Refused != 0 || s.Cause != "" {
		t.Errorf("the client says %+v", s)
	}
	agreed.Store(true)
	if err := read(c, block(1, 1000), make([]byte, 1000), 0); err != nil {
		t.Error(err)
	}
}

// A file that was changed is no refusal: the next reader asks for the block anew.
func TestChangedIsNotRefused(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	d := newDatanode(t, pass(x.data, x.sums))
	c := d.client(t)
	f, err := c.Open(t.Context(), block(1, 1000))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if err := os.Chmod(x.data, 0o640); err != nil {
		t.Fatal(err)
	}
	err = f.ReadAt(make([]byte, 1000), 0)
	if !errors.Is(err, shortcircuit.ErrChanged) {
		t.Errorf("got %v", err)
	}
	f.Fail(err)
	if err := read(c, block(1, 1000), make([]byte, 1000), 0); err != nil || d.asked.Load() != 2 {
		t.Errorf("asked %d times, and got %v", d.asked.Load(), err)
	}
}
