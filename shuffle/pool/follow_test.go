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

func (s *longState) Commits(stage uint64) []state.Commit {
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
		p := pool.New(pool.Config{Dir: t.TempDir(), State: long, Cluster: m, Nodes: func() []placement.Node { return s.up("") }, Log: slog.New(slog.DiscardHandler)})
		defer p.Close()
		other := &member{site: s, id: m.id, Pool: p}
		stop := other.follow()
		defer stop()
		for i := range 1000 {
			s.must(state.Sender{Node: m.id, Leads: true}, &state.Setting{Key: "k", Value: fmt.Sprint(i)})
			time.Sleep(time.Millisecond)
		}
		if n := long.listed.Load(); n < 4 || n > 10 {
			t.Errorf("in a second it has looked at the maps of a stage %d times, for 20 ms each", n)
		}
	})
}
