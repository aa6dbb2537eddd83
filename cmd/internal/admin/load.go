package admin

import (
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
	"rankfs/meta/group"
	"rankfs/meta/stall"
)

// supplied says how jobs are supplied with batches.
type supplied struct {
	mount, host string
	since       time.Time
	members     interface{ Status() group.Status }
	workers     interface{ Workers() int }
	views       *views.Views
	supply      *supply
	shuffles    *shuffles
}

// Load says how jobs are supplied.
func (n *supplied) Load(r control.LoadRequest) (control.Load, error) {
	wanted, err := n.wanted(r.Name)
	if err != nil {
		return control.Load{}, err
	}
	report := n.supply.report()
	tiers, counters := n.supply.stats(report)
	l := control.Load{
		Time: time.Now(), Mount: n.mount, Since: n.since, Workers: n.workers.Workers(),
		Host: n.host, Nodes: len(n.members.Status().Members),
		Jobs: []control.Job{}, Others: account(report.Others), Forgotten: report.Forgotten,
		Flows: flows(report.Flows), Tiers: tiers, Pool: n.shuffles.stats(), Counters: counters,
	}
	if c, enough := n.views.Memory.Lacked(); c != nil && c.Asked > 0 {
		l.Lacked = &control.Lack{Batches: c.Batches, Held: c.Held, Asked: c.Asked, Enough: enough}
	}
	for _, j := range report.Jobs {
		l.Ranks += j.Recently.Ranks
		if wanted(j.Name) {
			l.Jobs = append(l.Jobs, n.job(j, r.Ranks))
		}
	}
	return l, nil
}

// wanted says which jobs a name stands for: those of a dataset, or of a view.
func (n *supplied) wanted(name string) (func(job string) bool, error) {
	if name == "" {
		return func(string) bool { return true }, nil
	}
	v, d, err := n.views.Resolve(name)
	if err != nil {
		return nil, err
	}
	if _, _, isView := meta.SplitView(name); isView {
		name = views.JobName(v, d.Default)
		return func(job string) bool { return job == name }, nil
	}
	return func(job string) bool { return job == name || strings.HasPrefix(job, name+"@") }, nil
}

func (n *supplied) job(j stall.Job, ranks bool) control.Job {
	dataset, _, _ := meta.SplitView(j.Name)
	c := control.Job{
		ViewName: control.NameOf(n.views.JobCalled(j.Name)), Dataset: dataset, Silent: j.Silent.Seconds(), Waiting: j.Waiting,
		Typical: j.Typical.Seconds(), Longest: j.Longest.Seconds(), Here: len(j.Ranks),
		Total: account(j.Totals), Now: window(j.Now), Minute: window(j.Recently), Facts: n.facts(j.Name),
	}
	if v, d, err := n.views.Resolve(j.Name); err == nil {
		c.TooLarge = n.views.Memory.TooLarge(v, d.Version)
		if j.Waiting > 0 {
			c.Warning = n.views.Memory.ShortageOf(v, d.Version)
		}
	}
	if ranks {
		for _, r := range j.Ranks {
			c.Ranks = append(c.Ranks, control.Rank{Rank: r.Rank, Waiting: r.Waiting, Account: account(r.Totals)})
		}
	}
	return c
}

// facts are the figures of the view that a job reads, unless it is there no more.
func (n *supplied) facts(job string) *control.Facts {
	v, d, err := n.views.Resolve(job)
	if err != nil {
		return nil
	}
	x := d.Version.Index
	cut := v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	return &control.Facts{
		Ranks: v.Ranks, Bytes: x.Bytes(), Batch: x.Bytes() / int64(max(1, cut.Steps()*cut.Ranks)),
		// A shuffled batch is never read again, but the chunks it is made of are.
		Again:  v.Order.Kind == meta.OrderNone || d.Version.Source.Remote && !v.ByChunk(),
		Remote: d.Version.Source.Remote, Flows: flows(d.Version.Flows.Read()),
	}
}
