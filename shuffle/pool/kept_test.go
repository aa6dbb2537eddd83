package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// Maps of which too few copies are left get others, those first of which there is one.
func TestTheMostEndangeredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 5)
		m := s.members[0]
		m.stage("s", "maps=8 parts=1 copies=3")
		for i := range uint64(8) {
			m.commit("s", i, 0, fmt.Sprint("text ", i))
		}
		for i := range uint64(8) { // odd maps lose two copies, even ones lose one
			s.loseCopies("s", i, s.copies("s", i)[1:2+i%2]...)
		}
		before := len(agreed[*state.KeepCopy](s))
		stop := m.follow()
		time.Sleep(time.Minute)
		stop()
		var order []uint64
		for _, c := range agreed[*state.KeepCopy](s)[before:] {
			if c.Has {
				order = append(order, c.Map)
			}
		}
		if want := []uint64{1, 1, 3, 3, 5, 5, 7, 7, 0, 2, 4, 6}; !slices.Equal(order, want) {
			t.Errorf("maps got copies in the order %v, want %v", order, want)
		}
		for i := range uint64(8) {
			if n := len(s.copies("s", i)); n != 3 {
				t.Errorf("map %d has %d copies", i, n)
			}
		}
	})
}

// What a daemon left its next one has: maps, and attempts that can be committed. A map
// whose memory is gone is said to be lost here.
func TestAnotherDaemon(t *testing.T) {
	s := newSite(t, 2)
	m, other := s.members[0], s.members[1]
	m.stage("s", "maps=2 parts=1 copies=1")
	m.commit("s", 0, 0, "one")
	m.write("s", meta.Attempt{Map: 1}, "two")
	m.stop()
	m.start()
	if err := m.of("s").Attempts().Commit(s.ctx, meta.Attempt{Map: 1}, false); err != nil {
		t.Errorf("an attempt that an earlier daemon knew: %v", err)
	}
	for _, n := range s.members {
		if got, err := n.part("s", meta.Part{}); err != nil || got != "onetwo" {
			t.Errorf("on node %s the part is %q, %v", n.id, got, err)
		}
	}
	m.stop()
	m.unmount() // the host was started again
	m.start()
	defer m.follow()()
	eventually.True(t, "both maps are lost", func() bool {
		return len(s.copies("s", 0)) == 0 && len(s.copies("s", 1)) == 0
	})
	if _, err := other.part("s", meta.Part{}); !errors.Is(err, meta.ErrLost) || !strings.Contains(err.Error(), "map 0 ") {
		t.Errorf("a part of maps that are lost: %v", err)
	}
	m.commit("s", 0, 1, "one")
	m.commit("s", 1, 1, "two")
	if got, err := other.part("s", meta.Part{}); err != nil || got != "onetwo" {
		t.Errorf("after equal bytes were committed: %q, %v", got, err)
	}
}

// A heard handler keeps what is said.
type heard struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }

func (h *heard) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, r.Message)
	return nil
}

// Where a daemon's memory is gone, inspecting what it left, sweeping and reading each meet
// every lost map. A person is told of it once, and so is the cluster, whichever is first.
func TestALossIsToldOnce(t *testing.T) {
	const maps = 40
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", fmt.Sprintf("maps=%d parts=1 copies=1", maps))
	for i := range uint64(maps) {
		m.commit("s", i, 0, fmt.Sprint("text ", i))
	}
	m.stop()
	m.unmount()
	h := &heard{Handler: slog.DiscardHandler}
	s.log = h
	m.start()
	m.attempts("s") // its files are made anew, and inspected
	stop := m.follow()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			if _, err := m.part("s", meta.Part{}); !errors.Is(err, meta.ErrLost) && !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("a part of maps that are lost: %v", err)
			}
		})
	}
	eventually.True(t, "all maps are lost", func() bool {
		for i := range uint64(maps) {
			if len(s.copies("s", i)) > 0 {
				return false
			}
		}
		return true
	})
	readers.Wait()
	stop()
	if told := agreed[*state.KeepCopy](s); len(told) != maps {
		t.Errorf("the cluster was told of %d losses of %d", len(told), maps)
	}
	told := slices.DeleteFunc(h.said, func(what string) bool { return what != "a map of the shuffle pool is lost on this node" })
	if len(told) != maps {
		t.Errorf("a person was told of %d losses of %d", len(told), maps)
	}
}

// Copies of what was never agreed on go, after a while in which it could have been; those
// that were stay. So do the files of stages and jobs.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 2)
		m, other := s.members[0], s.members[1]
		m.stage("s", "maps=2 parts=1 copies=2")
		m.commit("s", 0, 0, "one")
		kept := other.files()
		s.silent(false)
		a := meta.Attempt{Map: 1}
		m.write("s", a, "two")
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a commit without an answer: %v", err)
		}
		stop := other.follow()
		defer func() { stop() }()
		time.Sleep(5 * time.Second)
		if len(other.files()) <= len(kept) {
			t.Error("a copy went that could be agreed on yet")
		}
		time.Sleep(time.Minute)
		if now := other.files(); !slices.Equal(now, kept) {
			t.Errorf("there are\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(kept, "\n"))
		}
		s.hook(hooks{})
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
			t.Error(err)
		}
		if got, err := other.part("s", meta.Part{}); err != nil || got != "onetwo" {
			t.Errorf("the part is %q, %v", got, err)
		}
		j, err := m.Job(s.ctx, "j")
		if err != nil {
			t.Fatal(err)
		}
		s.must(state.Sender{Node: m.id}, &state.DropStage{StageName: state.StageName{Job: "j", Name: "s"}})
		time.Sleep(time.Minute)
		if now := other.files(); !slices.Equal(now, []string{meta.BlobDir, "scratch"}) {
			t.Errorf("of a stage that is no more there are %v", now)
		}
		if err := m.RemoveJob(s.ctx, "j"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if left, _ := filepath.Glob(other.dir + "/*"); len(left) > 0 {
			t.Errorf("of job %d that is no more there are %v", j.Number(), left)
		}
	})
}

// A removal may be undone by a power failure until it is on the disk. Until then the files are
// there, too.
func TestFilesStayUntilTheirRemovalLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=2 parts=1 copies=1")
		m.commit("s", 0, 0, "one")
		m.commit("s", 1, 0, "two")
		stop := m.follow()
		defer func() { stop() }()
		time.Sleep(time.Minute) // in which a commit could be on its way
		files := func() []string {
			var all []string
			if err := filepath.WalkDir(m.dir, func(name string, _ fs.DirEntry, err error) error {
				all = append(all, name)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		for _, one := range []struct {
			name   string
			remove func() error
		}{
			{"a map", func() error { return m.of("s").Maps().Remove(s.ctx, 0) }},
			{"a stage", func() error { return m.of("s").Remove(s.ctx) }},
			{"a job", func() error { return m.RemoveJob(s.ctx, "j") }},
		} {
			before := files()
			s.hook(hooks{lasts: func() error { return meta.ErrNoSpace }})
			if err := one.remove(); err != nil {
				t.Fatalf("remove %s: %v", one.name, err)
			}
			time.Sleep(time.Minute)
			if now := files(); !slices.Equal(now, before) {
				t.Errorf("%s that may come back has\n%s\nwant\n%s", one.name, strings.Join(now, "\n"), strings.Join(before, "\n"))
			}
			s.hook(hooks{})
			time.Sleep(time.Minute)
			if now := files(); len(now) >= len(before) {
				t.Errorf("%s that is no more has all its files: %v", one.name, now)
			}
		}
	})
}

// files are all that a node has of the job j.
func (m *member) files() (names []string) {
	m.site.t.Helper()
	err := fs.WalkDir(m.root().FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if name != "." {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		m.site.t.Fatal(err)
	}
	return names
}

// Stages with maps or attempts, and jobs with stages, are not removed as if they had none.
func TestNotEmpty(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=1 parts=1")
	j, err := m.Job(s.ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	full := func(what string) {
		t.Helper()
		if err := j.RemoveStage(s.ctx, "s"); !errors.Is(err, unix.ENOTEMPTY) {
			t.Errorf("remove a stage with %s: %v", what, err)
		}
	}
	m.write("s", meta.Attempt{}, "text")
	full("an attempt")
	if err := m.of("s").Attempts().Commit(s.ctx, meta.Attempt{}, false); err != nil {
		t.Fatal(err)
	}
	full("a map")
	if err := m.RemoveJob(s.ctx, "j"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("remove a job with a stage: %v", err)
	}
	if err := errors.Join(m.of("s").Maps().Remove(s.ctx, 0), j.RemoveStage(s.ctx, "s"), m.RemoveJob(s.ctx, "j")); err != nil {
		t.Errorf("remove all in turn: %v", err)
	}
	if _, err := m.Job(s.ctx, "j"); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("a job that was removed: %v", err)
	}
}

// The cluster is told that something of a job is open, once, and a while after nothing is.
func TestUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=1")
		stop := m.follow()
		defer func() { stop() }()
		j, err := m.Job(s.ctx, "j")
		if err != nil {
			t.Fatal(err)
		}
		told := func() (all []string) {
			for _, c := range agreed[*state.UseJob](s) {
				all = append(all, fmt.Sprintf("open=%v hold=%v", c.Open, c.Hold))
			}
			return all
		}
		for range 100 { // files that are opened one after the other
			done := j.Use(false)
			time.Sleep(time.Second)
			done()
		}
		if got, want := told(), []string{"open=true hold=false"}; !slices.Equal(got, want) {
			t.Errorf("while files are opened: %q, want %q", got, want)
		}
		held := j.Use(true)
		time.Sleep(time.Hour)
		held()
		held() // twice is once
		time.Sleep(time.Minute)
		if got, want := told(), []string{"open=true hold=false", "open=true hold=true", "open=false hold=true"}; !slices.Equal(got, want) {
			t.Errorf("after the last close: %q, want %q", got, want)
		}
	})
}

// The nodes that use a job are named by their hosts, also one that is down.
func TestUsersAreHosts(t *testing.T) {
	s := newSite(t, 2)
	m, down := s.members[0], s.members[1].id
	m.stage("s", "maps=1")
	s.must(state.Sender{Node: down}, &state.UseJob{Node: down, Name: "j", Open: true})
	s.mu.lost[down] = true
	r, err := m.of("s").Report()
	if err != nil {
		t.Fatal(err)
	}
	if text := r.String(); !strings.Contains(text, "it is in use on host1\n") {
		t.Errorf("state says\n%s", text)
	}
}

// A job of which files are made, and a map is committed, while a node looks for what is no
// more has lost nothing.
func TestAJobThatComesWhileOthersAreSwept(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	looks := make(chan struct{})
	var looked atomic.Int64
	s.hook(hooks{jobs: func() {
		switch looked.Add(1) {
		case 2: // after those of the daemon before: what this node has is listed
			m.stage("s", "maps=1 copies=1")
			m.commit("s", 0, 0, "bytes")
		case 8:
			close(looks)
		}
	}})
	stop := m.follow()
	<-looks
	stop()
	if said := agreed[*state.KeepCopy](s); len(said) > 0 {
		t.Errorf("of a map that is here it is said: %+v", said[0])
	}
	if got := s.copies("s", 0); len(got) != 1 {
		t.Errorf("the map has copies on %v", got)
	}
}

// A job that is removed in the moment in which the daemon ends leaves no mount behind.
func TestAJobThatGoesWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=1 copies=1")
		m.commit("s", 0, 0, "bytes")
		s.hook(hooks{jobs: func() { time.Sleep(time.Second) }}) // so that a node rests after it has looked
		stop := m.follow()
		time.Sleep(3 * time.Second)
		s.must(state.Sender{Node: m.id}, &state.DropStage{StageName: state.StageName{Job: "j", Name: "s"}})
		if err := m.RemoveJob(s.ctx, "j"); err != nil {
			t.Error(err)
		}
		stop()
		if left, _ := filepath.Glob(m.dir + "/*"); len(left) > 0 {
			t.Errorf("of a job that is no more there are %v", left)
		}
	})
}

// While the files of a job are made, which takes a mount, a request for what the jobs have does not
// wait.
func TestNoRequestWaitsForAMount(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=1")
	var counted atomic.Int64
	s.hook(hooks{job: func() {
		asked := make(chan struct{})
		go func() {
			m.Used()
			close(asked)
		}()
		select {
		case <-asked:
			counted.Add(1)
		case <-time.After(2 * time.Minute):
			t.Error("what jobs have is not told while files are made")
		}
	}})
	m.attempts("s")
	if n := counted.Load(); n < 2 {
		t.Errorf("it was asked %d times, not when the job was looked up and when its files were made", n)
	}
}

// What comes into a stage, or a job, after a node has found it empty does not go with it.
func TestNotEmptyAnyMore(t *testing.T) {
	s := newSite(t, 2)
	m, elsewhere := s.members[0], s.members[1]
	m.stage("s", "maps=1 parts=1 copies=1")
	j, err := m.Job(s.ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	s.hook(hooks{ask: func(c state.Command) error {
		if _, ok := c.(*state.DropStage); ok {
			elsewhere.commit("s", 0, 0, "text")
		}
		return nil
	}})
	if err := j.RemoveStage(s.ctx, "s"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("remove a stage as a map is committed: %v", err)
	}
	if got, err := m.part("s", meta.Part{}); got != "text" || err != nil {
		t.Errorf("its part is %q, %v", got, err)
	}
	if err := errors.Join(m.of("s").Maps().Remove(s.ctx, 0), m.of("s").Remove(s.ctx)); err != nil {
		t.Fatal(err)
	}
	s.hook(hooks{ask: func(c state.Command) error {
		if _, ok := c.(*state.DropJob); ok {
			elsewhere.stage("s", "maps=1 parts=1")
		}
		return nil
	}})
	if err := m.RemoveJob(s.ctx, "j"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("remove a job as a stage is made: %v", err)
	}
	m.of("s")
}
