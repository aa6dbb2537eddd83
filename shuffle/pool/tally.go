package pool

import (
	"context"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/report"
)

// A Count is the sum of the stages of a job, or of all jobs.
type Count struct {
	Stages int
	meta.PoolTally
}

func (c *Count) add(g state.PoolStage, t report.Tally) {
	c.Stages++
	c.Maps += g.Maps
	c.Bytes += g.Bytes
	c.Missing += t.Missing
	c.Away += len(t.Away)
	c.Lost += len(t.Lost)
}

// Add counts a stage.
func (c *Count) Add(r report.Report) { c.add(r.Stage, r.Tally) }

// The tallies are the counts of all jobs when they were last added up. The lock is held
// to exchange the counts, not while they are added up.
type tallies struct {
	*agreed
	refusals *report.Refusals // those of stages that are gone are forgotten

	mu struct {
		sync.Mutex
		counts map[uint64]Count // by number; made anew, and never changed
	}
}

// look counts what all jobs have come to.
func (t *tallies) look(context.Context) (again bool) {
	nodes := t.config.Nodes()
	live, active := up(nodes), activeNodes(nodes)
	counts, stages := make(map[uint64]Count), make(map[uint64]bool)
	for _, j := range t.config.State.PoolJobs() {
		counts[j.Number] = t.count(t.config.State.Stages(j.Number), live, active)
		for _, g := range t.config.State.Stages(j.Number) {
			stages[g.Number] = true
		}
	}
	t.refusals.Keep(stages)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.counts = counts
	return false
}

func (t *tallies) count(stages []state.PoolStage, live, active map[string]bool) (c Count) {
	for _, g := range stages {
		c.add(g, report.TallyOf(t.wanted(g.Spec), t.config.State.Commits(g.Number), live, active))
	}
	return c
}
