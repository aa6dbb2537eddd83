package admin

import (
	"strings"
	"time"

	"rankfs/cache/stall"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// Load says how jobs are supplied.
func (n *status) Load(r control.LoadRequest) (control.Load, error) {
	wanted, err := n.wanted(r.Name)
	if err != nil {
		return control.Load{}, err
	}
	report, c := n.Stalls.Report(), n.cache.Stats()
	l := control.Load{
		Time: time.Now(), Mount: n.Mount, Since: n.Since, Workers: n.cache.Workers(),
		Host: n.Host, Nodes: len(n.Group.Status().Members),
		Jobs: []control.Job{}, Others: account(report.Others), Forgotten: report.Forgotten,
		Flows: flows(report.Flows), Tiers: n.tiers(c), Counters: n.counters(c, report),
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
func (n *status) wanted(name string) (func(job string) bool, error) {
	if name == "" {
		return func(string) bool { return true }, nil
	}
	v, d, err := n.Views.Resolve(name)
	if err != nil {
		return nil, err
	}
	if _, _, isView := meta.SplitView(name); isView {
		name = views.JobName(v, d.Default)
		return func(job string) bool { return job == name }, nil
	}
	return func(job string) bool { return job == name || strings.HasPrefix(job, name+"@") }, nil
}

func (n *status) job(j stall.Job, ranks bool) control.Job {
	dataset, _, _ := meta.SplitView(j.Name)
	c := control.Job{
		Name: j.Name, Dataset: dataset, Silent: j.Silent.Seconds(), Waiting: j.Waiting,
		Typical: j.Typical.Seconds(), Longest: j.Longest.Seconds(), Here: len(j.Ranks),
		Total: account(j.Totals), Now: window(j.Now), Minute: window(j.Recently), View: n.facts(j.Name),
	}
	if j.Waiting > 0 {
		c.Warning = n.Views.ShortageNow()
	}
	if ranks {
		for _, r := range j.Ranks {
			c.Ranks = append(c.Ranks, control.Rank{Rank: r.Rank, Waiting: r.Waiting, Account: account(r.Totals)})
		}
	}
	return c
}

// facts are of the view that a job reads, unless it is there no more.
func (n *status) facts(job string) *control.Facts {
	v, d, err := n.Views.Resolve(job)
	if err != nil {
		return nil
	}
	x := d.Version.Index
	cut := v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	return &control.Facts{
		Ranks: v.Ranks, Bytes: x.Bytes(), Batch: x.Bytes() / int64(max(1, cut.Steps()*cut.Ranks)),
		// A shuffled batch is never read again, but the chunks it is made of are.
		Again:  v.Order.Kind == meta.OrderNone || d.Version.Source.Remote && v.Step.Unit != meta.UnitChunk,
		Remote: d.Version.Source.Remote, Flows: flows(d.Version.Flows.Read()),
	}
}

func window(w stall.Window) control.Window {
	return control.Window{Seconds: w.Width.Seconds(), Ranks: w.Ranks, Account: account(w.Totals)}
}

func account(t stall.Totals) control.Account {
	return control.Account{
		Opens: t.Opens, Ready: t.Ready, Waited: t.Waited, Errors: t.Errors, Bytes: t.Bytes,
		RankSeconds: t.Time.Seconds(), Stalled: t.Stalled.Seconds(), Waits: waitsOf(t.Wait), HDFSWaits: hdfsWaits(t.Wait),
	}
}

func waitsOf(s stall.Split) control.Waits {
	source := s[stall.Source] + s[stall.ByFile] + s[stall.ByTCP] + s[stall.Remote]
	return control.Waits{
		Admission: s[stall.Admission].Seconds(), Plan: s[stall.Plan].Seconds(), Source: source.Seconds(),
		Peer: s[stall.Peer].Seconds(), Decode: s[stall.Decode].Seconds(), Disk: s[stall.Disk].Seconds(),
	}
}

func hdfsWaits(s stall.Split) control.Ways[float64] {
	return control.Ways[float64]{Files: s[stall.ByFile].Seconds(), LocalTCP: s[stall.ByTCP].Seconds(), Remote: s[stall.Remote].Seconds()}
}

func flows(f [stall.Causes]stall.Flow) control.Flows {
	return control.Flows{
		Source: flow(f[stall.Source]), Peers: flow(f[stall.Peer]), Decoded: flow(f[stall.Decode]),
		HDFS: control.Ways[control.Flow]{Files: flow(f[stall.ByFile]), LocalTCP: flow(f[stall.ByTCP]), Remote: flow(f[stall.Remote])},
	}
}

func flow(f stall.Flow) control.Flow {
	return control.Flow{Bytes: f.Bytes, Busy: f.Busy.Seconds(), Held: f.Held.Seconds(), Under: f.Under}
}
