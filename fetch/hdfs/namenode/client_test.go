package namenode_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// The keeper of a real cluster outlives the tests that started it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"))
}

type set = map[protoreflect.Name]any

// sized answers Stat with a file of a size.
func sized(size uint64) func(*asked) {
	return func(a *asked) { a.reply(set{"fs": file("", size, nil)}) }
}

func standby(a *asked) {
	a.fail("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby\n\tat java")
}

func silent(a *asked) {}

func dropping(a *asked) {
	a.send([]byte{0, 0, 1, 0, 3})
	a.conn.Close()
}

func raw(b string) func(*asked) { return func(a *asked) { a.send([]byte(b)) } }

// after answers with first n times and with then from there on.
func after(n int, first, then func(*asked)) func(*asked) {
	var mu sync.Mutex
	return func(a *asked) {
		mu.Lock()
		n--
		now := then
		if n >= 0 {
			now = first
		}
		mu.Unlock()
		now(a)
	}
}

func TestFailover(t *testing.T) {
	rows := []struct {
		name  string
		a, b  func(*asked) // b is of a second namenode, or nil
		says  []string     // of an error, or none
		is    []error
		takes time.Duration // at most
	}{
		{name: "one", a: sized(7)},
		{name: "standby first", a: standby, b: sized(7)},
		{name: "refused first", a: nil, b: sized(7)},
		{name: "silent first", a: silent, b: sized(7), takes: 10 * time.Second},
		{name: "dropped in mid-reply, second", a: dropping, b: sized(7)},
		{name: "dropped in mid-reply, again", a: after(1, dropping, sized(7)), takes: 200 * time.Millisecond},
		{name: "giant length first", a: raw("\xff\xff\xff\xff"), b: sized(7)},
		{name: "garbage first", a: raw("\x00\x00\x00\x05\x0b\xff\xff\xff\xff"), b: sized(7)},
		{name: "both standby for a while", a: standby, b: after(7, standby, sized(7)), takes: 15 * time.Second},
		{name: "starting up", a: after(2, func(a *asked) {
			a.fail("org.apache.hadoop.ipc.RetriableException", "NameNode still not started")
		}, sized(7)), b: standby, takes: time.Second},

		{name: "silent alone", a: silent, takes: 20 * time.Second,
			says: []string{`namenode a:1: getFileInfo "/x": `, "20s", "a:1: no answer in time"},
			is:   []error{namenode.ErrUnreachable, meta.ErrBusy, meta.ErrUnavailable}},
		{name: "both standby", a: standby, b: standby, takes: 20 * time.Second,
			says: []string{"namenode a:1, b:1: ", "b:1: StandbyException: Operation category READ"},
			is:   []error{namenode.ErrSafeMode, meta.ErrBusy, meta.ErrUnavailable}},
		{name: "one dropping", a: dropping, takes: 200 * time.Millisecond,
			says: []string{"a:1: reply of 256 bytes ends after 1"}, is: []error{namenode.ErrUnreachable}},
		{name: "one with HTTP", a: raw("HTTP/1.1 400 Bad Request\r\n"), takes: time.Second,
			says: []string{"it is HTTP; give the namenode's RPC port"}, is: []error{namenode.ErrUnreachable}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{hosts: map[string]func(*asked){"a:1": r.a}}
				config := namenode.Config{Addresses: []string{"a:1"}}
				if r.b != nil {
					f.hosts["b:1"] = r.b
					config.Addresses = append(config.Addresses, "b:1")
				}
				c := f.connected(t, config)
				began := time.Now()
				st, err := c.Stat(t.Context(), "/x")
				if took := time.Since(began); took > r.takes {
					t.Errorf("took %v", took)
				}
				if r.says == nil && (err != nil || st.Size != 7) {
					t.Errorf("got %+v, %v", st, err)
				}
				holds(t, err, r.says, r.is)
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v: the caller set no deadline", err)
				}
			})
		})
	}
}

// While no namenode answers the first call takes all its time, and no other one
// does; as soon as one answers again, so do calls.
func TestOutage(t *testing.T) {
	for name, away := range map[string]func(*asked){"silent": silent, "standby": standby} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Bool
				f := &fake{hosts: map[string]func(*asked){"a:1": away, "b:1": func(a *asked) {
					if back.Load() {
						rpcSized(a)
					} else {
						away(a)
					}
				}}}
				c := f.connected(t, namenode.Config{Addresses: []string{"a:1", "b:1"}})
				began := time.Now()
				for range 1000 {
					_, err := c.Stat(t.Context(), "/x")
					holds(t, err, []string{"namenode a:1, b:1: ", "a:1: ", "b:1: "}, []error{meta.ErrBusy, meta.ErrUnavailable})
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("1000 calls took %v, want the time of one", took)
				}
				time.Sleep(5 * time.Minute)
				back.Store(true)
				time.Sleep(10 * time.Second)
				began = time.Now()
				if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 || time.Since(began) > 0 {
					t.Errorf("it is back, and the call after %v gets %+v, %v", time.Since(began), st, err)
				}
			})
		})
	}
}

// A caller who gave up knows nothing of namenodes.
func TestNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hosts: map[string]func(*asked){"a:1": after(1, silent, sized(7))}}
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Stat(ctx, "/x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's own time is over: %v", err)
		}
		if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 {
			t.Errorf("the next call gets %+v, %v", st, err)
		}
	})
}

// holds checks the words and kinds of an error.
func holds(t *testing.T, err error, says []string, is []error) {
	t.Helper()
	for _, s := range says {
		if err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("%v; want %q in it", err, s)
		}
	}
	for _, e := range is {
		if !errors.Is(err, e) {
			t.Errorf("%v; want it to be %q", err, e)
		}
	}
}

// The active namenode is remembered: the one in standby is asked once.
func TestRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		f := &fake{hosts: map[string]func(*asked){"a:1": func(a *asked) { count++; standby(a) }, "b:1": sized(7)}}
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1", "b:1"}})
		for range 5 {
			if _, err := c.Stat(t.Context(), "/x"); err != nil {
				t.Fatal(err)
			}
		}
		if count != 1 {
			t.Errorf("the one in standby was asked %d times", count)
		}
	})
}

// Calls share a connection and get their own replies in whatever order.
func TestReordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 50
		var held []*asked
		dials := 0
		f := &fake{dials: func(string) { dials++ }}
		f.hosts = map[string]func(*asked){"a:1": func(a *asked) {
			if held = append(held, a); len(held) < calls {
				return
			}
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(calls) {
				a := held[i]
				var size uint64
				fmt.Sscanf(a.arg("src").String(), "/%d", &size)
				a.reply(set{"fs": file("", size, nil)})
			}
		}}
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				if st, err := c.Stat(t.Context(), fmt.Sprintf("/%d", i)); err != nil || st.Size != int64(i) {
					t.Errorf("call %d got %d, %v", i, st.Size, err)
				}
			})
		}
		wg.Wait()
		if dials != 1 {
			t.Errorf("%d connections", dials)
		}
	})
}

// A call that was given up, and whose reply comes late, disturbs no other.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late *asked
		f := &fake{hosts: map[string]func(*asked){"a:1": func(a *asked) {
			if late == nil {
				late = a
				return
			}
			late.reply(set{"fs": file("", 1, nil)})
			a.reply(set{"fs": file("", 7, nil)})
		}}}
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Stat(ctx, "/x")
		holds(t, err, nil, []error{context.DeadlineExceeded})
		if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 {
			t.Errorf("got %+v, %v", st, err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		_, err = c.Stat(stopped, "/x")
		holds(t, err, nil, []error{context.Canceled})
	})
}

// A connection that the namenode closed while it was idle is no error, and one
// that has been idle for a while is closed.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last *asked
		f := &fake{hosts: map[string]func(*asked){"a:1": func(a *asked) { last = a; sized(7)(a) }}}
		dials := 0
		f.dials = func(string) { dials++ }
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
		stat := func() {
			t.Helper()
			if _, err := c.Stat(t.Context(), "/x"); err != nil {
				t.Error(err)
			}
		}
		stat()
		last.conn.Close()
		stat()
		stat()
		if dials != 2 {
			t.Errorf("%d connections, want 2", dials)
		}
		time.Sleep(2 * time.Minute)
		if _, err := last.conn.Write([]byte{0}); err == nil {
			t.Error("an idle connection is open")
		}
		stat()
		if dials != 3 {
			t.Errorf("%d connections, want 3", dials)
		}
	})
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hosts: map[string]func(*asked){"a:1": silent}}
		c := f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Stat(t.Context(), "/x")
			holds(t, err, []string{"client is closed"}, nil)
		})
		synctest.Wait()
		c.Close()
		wg.Wait()
		_, err := c.Stat(t.Context(), "/x")
		holds(t, err, []string{"client is closed"}, nil)
	})
}

func TestUsers(t *testing.T) {
	rows := []struct {
		name   string
		config namenode.Config
		want   string
	}{
		{"himself", namenode.Config{User: "alice"}, "alice"},
		{"for another", namenode.Config{User: "alice", ActFor: "bob"}, "alice for bob"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := &fake{hosts: map[string]func(*asked){"a:1": sized(7)}}
			r.config.Addresses = []string{"a:1"}
			c := f.connected(t, r.config)
			if _, err := c.Stat(t.Context(), "/x"); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(f.mu.contexts, ", "); got != r.want {
				t.Errorf("connected as %q", got)
			}
		})
	}
}
