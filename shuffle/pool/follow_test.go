package pool_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/placement"
	"rankfs/shuffle/pool"
)

// A longState takes its time to list the maps of a stage, and counts how often.
type longState struct {
	*state.Machine
	listed atomic.Int64
}

func (s *longState) Commits(stage uint64) state.Maps {
	s.listed.Add(1)
	time.Sleep(20 * time.Millisecond)
	return s.Machine.Commits(stage)
}

// However often something is committed, a node looks at all maps only so often.
func TestLooksAreFollowedByRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=2")
		long := &longState{Machine: s.machine}
		p := pool.New(pool.Config{Dir: t.TempDir(), State: long, Cluster: m, Member: m, Nodes: func() []placement.Node { return s.up("") }, Log: slog.New(slog.DiscardHandler)})
		defer p.Close()
		other := &member{site: s, id: m.id, Pool: p}
		stop := other.follow()
		defer stop()
		for i := range 4000 {
			s.must(state.Sender{Node: m.id, Leads: true}, &state.Setting{Key: "k", Value: fmt.Sprint(i)})
			time.Sleep(time.Millisecond)
		}
		if n := long.listed.Load(); n < 6 || n > 12 {
			t.Errorf("in four seconds it has looked at the maps of a stage %d times, for 20 ms each", n)
		}
	})
}

// Jobs, stages and maps are counted as soon as they are there, whatever a node has looked at.
func TestStagesAndMapsAreCountedAtOnce(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("one", "maps=2")
	m.stage("two", "maps=2")
	if _, err := m.MakeJob(t.Context(), "empty", 7, 7, 0); err != nil {
		t.Fatal(err)
	}
	m.commit("one", 0, 0, "words")
	if got := m.Stats(); got.Jobs != 2 || got.Stages != 2 || got.Maps != 1 || got.Bytes != 5 {
		t.Errorf("%d jobs, %d stages, %d maps of %d bytes are counted, want 2, 2, 1 of 5", got.Jobs, got.Stages, got.Maps, got.Bytes)
	}
}

// What a job had is free soon after the job is removed, also while a node rests from a long look.
func TestRemovedJobsDoNotWaitForRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=2")
		p := pool.New(pool.Config{
			Dir: t.TempDir(), RAM: 1 << 20, Used: func(int64) {}, State: &longState{Machine: s.machine}, Cluster: m, Member: m,
			Nodes: func() []placement.Node { return s.up("") }, Log: slog.New(slog.DiscardHandler),
		})
		defer p.Close()
		j, err := p.MakeJob(t.Context(), "gone", 7, 7, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Files(); err != nil {
			t.Fatal(err)
		}
		other := &member{site: s, id: m.id, Pool: p}
		stop := other.follow()
		defer stop()
		time.Sleep(200 * time.Millisecond) // it has looked at the maps of the other job, and rests
		if n := len(p.Used()); n != 1 {
			t.Fatalf("%d jobs have files", n)
		}
		s.must(state.Sender{Node: m.id, Leads: true}, &state.DropJob{Name: "gone", Number: j.Number(), Empty: true})
		time.Sleep(100 * time.Millisecond)
		if n := len(p.Used()); n != 0 {
			t.Errorf("a job that was removed has files still")
		}
	})
}
