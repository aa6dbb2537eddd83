package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// The first attempt of a map wins, on whichever node; a later one is discarded, or
// refused where it was to be the only one. Then it stays.
func TestLaterAttempts(t *testing.T) {
	s := newSite(t, 2)
	s.members[0].stage("s", "maps=1 parts=1 copies=1")
	s.members[0].commit("s", 0, 0, "first")
	for _, m := range s.members {
		late := meta.Attempt{Number: 3}
		m.write("s", late, "second")
		if err := m.of("s").Attempts().Commit(s.ctx, late, true); !errors.Is(err, unix.EEXIST) {
			t.Errorf("a later attempt that was to be the only one: %v", err)
		}
		if left := m.left("s"); !slices.Equal(left, []string{".map-000000.3", ".map-000000.3.idx"}) {
			t.Errorf("after it was refused there are %v", left)
		}
		if err := m.of("s").Attempts().Commit(s.ctx, late, false); err != nil {
			t.Errorf("a later attempt: %v", err)
		}
		if err := m.of("s").Attempts().Commit(s.ctx, late, false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an attempt that is not there: %v", err)
		}
		if left := m.left("s"); len(left) > 0 {
			t.Errorf("it has left %v", left)
		}
		if got, err := m.part("s", meta.Part{}); err != nil || got != "first" {
			t.Errorf("the part is %q, %v", got, err)
		}
	}
}

// An attempt that loses while it is committed, as both are under way, is discarded too.
func TestAttemptsAtOnce(t *testing.T) {
	s := newSite(t, 2)
	s.members[0].stage("s", "maps=1 parts=1 copies=1")
	loser, a := s.members[1], meta.Attempt{Number: 5}
	loser.write("s", a, "loser")
	s.hook(hooks{ask: func(state.Command) error {
		s.hook(hooks{})
		s.members[0].commit("s", 0, 0, "winner")
		return nil
	}})
	if err := loser.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
		t.Errorf("the loser's rename: %v", err)
	}
	if got, err := loser.part("s", meta.Part{}); err != nil || got != "winner" || len(loser.left("s")) > 0 {
		t.Errorf("the part is %q, %v; left: %v", got, err, loser.left("s"))
	}
}

// No process can write what is committed: while one still can, by a descriptor or a mapping, the
// commit waits, and is refused if that takes too long.
func TestWritersAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=1 parts=1")
		a := meta.Attempt{}
		m.write("s", a, "text")
		f, err := os.OpenFile(filepath.Join(m.attempts("s"), a.String()), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(by string) {
			t.Helper()
			if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrBusy) {
				t.Errorf("committed under %s: %v", by, err)
			}
		}
		refused("a descriptor")
		mem, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		refused("a mapping")
		time.AfterFunc(100*time.Millisecond, func() { _ = unix.Munmap(mem) })
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
			t.Errorf("a writer that leaves in time: %v", err)
		}
	})
}

// Offsets that cannot be are refused, and the attempt stays for a better try. One part
// needs none.
func TestOffsets(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=1 parts=2")
	m.stage("one", "maps=1")
	a := meta.Attempt{}
	for name, idx := range map[string][]byte{
		"none":               nil,
		"too few":            offsetsOf("text"),
		"too many":           offsetsOf("te", "xt", ""),
		"half a number":      offsetsOf("te", "xt")[:20],
		"backwards":          slices.Concat(offsetsOf("text."), offsetsOf("text")[8:]),
		"not from the start": slices.Concat(offsetsOf("t")[8:], offsetsOf("te")[8:], offsetsOf("text")[8:]),
		"not to the end":     offsetsOf("t", "x"),
		"beyond the end":     offsetsOf("te", "xt."),
		"negative":           slices.Concat(make([]byte, 8), []byte("\xff\xff\xff\xff\xff\xff\xff\xff"), offsetsOf("text")[8:]),
	} {
		m.lay("s", a.String(), []byte("text"))
		if idx != nil {
			m.lay("s", a.String()+".idx", idx)
		}
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, unix.EBADMSG) || strings.Contains(err.Error(), " -") {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(filepath.Join(m.attempts("s"), a.String()+".idx"))
	}
	m.write("s", a, "te", "xt")
	if err := os.Truncate(filepath.Join(m.attempts("s"), a.String()+".idx"), 1<<46); err != nil { // more than a process can have
		t.Fatal(err)
	}
	if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, unix.EBADMSG) {
		t.Errorf("of 64 TiB: %v", err)
	}
	m.commit("s", 0, 0, "te", "xt")
	m.lay("one", a.String(), []byte("text"))
	if err := m.of("one").Attempts().Commit(s.ctx, a, false); err != nil {
		t.Errorf("one part without offsets: %v", err)
	}
}

// mayWrite says why an attempt must not be written, if so.
func (m *member) mayWrite(stage string, a meta.Attempt) error {
	done, err := m.of(stage).Attempts().Write(a)
	if err == nil {
		done()
	}
	return err
}

// An open that was told that an attempt may be written keeps it from being committed, also before
// the kernel has a descriptor of it; and no open is told so while it is committed.
func TestWrittenOrCommitted(t *testing.T) {
	s := newSite(t, 2)
	m, a := s.members[0], meta.Attempt{}
	m.stage("s", "maps=1 parts=1 copies=2")
	m.write("s", a, "text")
	done, err := m.of("s").Attempts().Write(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("committed while it was opened: %v", err)
	}
	done()
	var meanwhile error
	s.hook(hooks{connect: func() { meanwhile = m.mayWrite("s", a) }}) // while the copy is on its way
	if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
		t.Error(err)
	}
	if !errors.Is(meanwhile, meta.ErrBusy) {
		t.Errorf("opened while it was committed: %v", meanwhile)
	}
}

// A commit whose outcome is not known goes well when it is tried again, whether the cluster had
// agreed on it or not. Until then the attempt stays, and cannot be written.
func TestUnknownOutcome(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened=", happened), func(t *testing.T) {
			s := newSite(t, 2)
			m, a := s.members[0], meta.Attempt{Number: 1}
			m.stage("s", "maps=1 parts=1")
			m.write("s", a, "text")
			s.silent(happened)
			if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a commit without an answer: %v", err)
			}
			if err := m.mayWrite("s", a); !errors.Is(err, meta.ErrBusy) {
				t.Errorf("may it be written? %v", err)
			}
			s.hook(hooks{})
			if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
				t.Errorf("once more: %v", err)
			}
			if got, err := m.part("s", meta.Part{}); err != nil || got != "text" || len(m.left("s")) > 0 {
				t.Errorf("the part is %q, %v; left: %v", got, err, m.left("s"))
			}
		})
	}
}

// A commit that is given up before the cluster was asked has not happened.
func TestInterruptedCommit(t *testing.T) {
	s := newSite(t, 2)
	m, a := s.members[0], meta.Attempt{}
	m.stage("s", "maps=1 parts=1 copies=2")
	m.write("s", a, "text")
	ctx, cancel := context.WithCancel(s.ctx)
	before := len(agreed[state.Command](s))
	s.hook(hooks{connect: cancel}) // while the copy is on its way
	if err := m.of("s").Attempts().Commit(ctx, a, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit that was given up: %v", err)
	}
	if all := agreed[state.Command](s)[before:]; len(all) > 0 {
		t.Errorf("the cluster has agreed to %T", all[0])
	}
	if err := m.mayWrite("s", a); err != nil {
		t.Errorf("the attempt cannot be written any more: %v", err)
	}
	s.hook(hooks{})
	m.commit("s", 0, 0, "other text")
}

// A node that cannot be reached takes no copy, and the next one does; where none is left
// the commit has fewer, or is refused if the spec is strict, and nothing stays of it.
func TestCopiesElsewhere(t *testing.T) {
	s := newSite(t, 4)
	m := s.members[0]
	m.stage("s", "maps=9 parts=1 copies=2")
	m.stage("strict", "maps=9 parts=1 copies=3 strict=1")
	s.fail(s.members[1], s.members[2])
	for i := range uint64(6) {
		m.commit("s", i, 0, "text")
		if got := s.copies("s", i); !slices.Equal(got, []string{m.id, s.members[3].id}) {
			t.Errorf("map %d has copies on %v", i, got)
		}
	}
	a := meta.Attempt{}
	m.write("strict", a, "text")
	if err := m.of("strict").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "1 of 3 copies") {
		t.Errorf("with two copies of three: %v", err)
	}
	if err := m.mayWrite("strict", a); err != nil {
		t.Errorf("the attempt cannot be written any more: %v", err)
	}
}

// With no other node to be reached a commit has the one copy.
func TestNoOtherNode(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	m.stage("s", "maps=1 parts=1 copies=2")
	s.fail(s.members[1])
	m.commit("s", 0, 0, "text")
	if got := s.copies("s", 0); !slices.Equal(got, []string{m.id}) {
		t.Errorf("the map has copies on %v", got)
	}
	if got, err := m.part("s", meta.Part{}); err != nil || got != "text" {
		t.Errorf("the part is %q, %v", got, err)
	}
}

// An attempt that was sealed by one spec, as the stage is given another, is committed by
// that, with the copies that it wants, or refused.
func TestAnotherSpecInTheMiddle(t *testing.T) {
	for name, to := range map[string]struct {
		spec string
		want error
	}{
		"more copies": {"maps=1 parts=2 copies=2", nil},
		"more parts":  {"maps=1 parts=3 copies=1", unix.EBADMSG},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 2)
			m := s.members[0]
			m.stage("s", "maps=1 parts=2 copies=1")
			m.write("s", meta.Attempt{}, "ab", "c")
			once := sync.OnceFunc(func() {
				if err := s.members[1].of("s").Specify(s.ctx, to.spec); err != nil {
					t.Error(err)
				}
			})
			s.hook(hooks{ask: func(c state.Command) error {
				if _, ok := c.(*state.CommitMaps); ok {
					once()
				}
				return nil
			}})
			err := m.of("s").Attempts().Commit(s.ctx, meta.Attempt{}, false)
			if !errors.Is(err, to.want) {
				t.Fatalf("commit: %v, want %v", err, to.want)
			}
			if _, won := s.machine.Commit(m.of("s").Number(), 0); won != (to.want == nil) {
				t.Errorf("committed: %v", won)
			}
			if to.want != nil {
				return
			}
			if on := s.copies("s", 0); len(on) != 2 {
				t.Errorf("copies on %v", on)
			}
		})
	}
}

// A copy for a node that says nothing any more is waited for until the cluster knows that the
// node is down: that is sooner than the sender would give the node up.
func TestCopyForANodeThatGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 2)
		m, other := s.members[0], s.members[1]
		m.stage("s", "maps=1 parts=1 copies=2")
		s.mu.Lock()
		s.mu.silent[other.id] = true
		s.mu.Unlock()
		time.AfterFunc(2*time.Second, func() { s.loses(other.id) })
		begin := time.Now()
		m.commit("s", 0, 0, "text")
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("it took %v of the virtual clock", took)
		}
		if got := s.copies("s", 0); !slices.Equal(got, []string{m.id}) {
			t.Errorf("the map has copies on %v", got)
		}
	})
}
