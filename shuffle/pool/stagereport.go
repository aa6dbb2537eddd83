package pool

import (
	"rankfs/meta"
	"rankfs/shuffle/report"
)

// Report says how a stage is, as far as this node knows.
func (g *Stage) Report() (r report.Report, err error) {
	p := g.pool
	if r.Stage, err = g.is(); err != nil {
		return r, err
	}
	r.Job = g.job
	if j, ok := p.config.State.PoolJob(r.Job.Name); ok {
		r.Job = j
	}
	nodes := p.config.Nodes()
	r.Hosts = make(map[string]string)
	for id := range r.Job.Users { // which may be down
		r.Hosts[id] = p.config.State.HostOf(id)
	}
	commits := p.config.State.Commits(g.number)
	r.Wanted = p.wanted(r.Stage.Spec)
	r.Tally = report.TallyOf(r.Wanted, commits, up(nodes), activeNodes(nodes))
	r.Nodes = report.KeptBy(commits, up(nodes))
	r.Open = report.NotCommitted(r.Stage.Spec.Maps, commits)
	r.Names = make(map[uint64]string)
	for _, number := range r.Lost {
		r.Names[number] = meta.MapName(number)
	}
	for _, c := range commits.All() {
		if c.Name != "" {
			r.Names[c.Map] = c.Name
		}
	}
	r.Waits = p.waits.Of(g.number)
	r.Refused = p.refusals.Of(g.number)
	return r, nil
}

// Refused notes why something that a program asked of the stage was refused.
func (g *Stage) Refused(what string, err error) { g.pool.refusals.Note(g.number, what, err) }
