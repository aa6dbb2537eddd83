package admin

import (
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// A supply counts what comes to ranks, and how long they wait for it.
type supply struct {
	kept interface {
		Stats() ([]control.Tier, control.Counters)
	}
	tree    interface{ Stats() fs.Stats } // set by Start
	stalls  interface{ Report() stall.Report }
	catalog interface {
		Get(name string) (*catalog.Dataset, error)
	}
}

// tiers are those of the cache.
func (n *supply) tiers() []control.Tier {
	tiers, _ := n.kept.Stats()
	return tiers
}

// stats has the counters of the cache and the tree, and the waits of opens.
func (n *supply) stats(r stall.Report) ([]control.Tier, control.Counters) {
	tiers, c := n.kept.Stats()
	t, waits := n.tree.Stats(), r.All().Wait
	c.OpenErrors, c.BatchReads, c.Lookups, c.Views = t.Errors, t.BatchReads, t.Lookups, t.Views
	c.Readers = r.Reading()
	c.WaitSeconds, c.Waits, c.HDFSWaits = waits.Sum().Seconds(), waitsOf(waits), hdfsWaits(waits)
	return tiers, c
}

// report has the waits of jobs, those of a name that another dataset has now all together.
func (n *supply) report() stall.Report { return n.stalls.Report().Without(n.past) }

// past reports whether a job read a dataset whose name another has now.
func (n *supply) past(j stall.Job) bool {
	dataset, _, _ := meta.SplitView(j.Name)
	d, err := n.catalog.Get(dataset)
	return err == nil && d.Created.UnixNano() != j.Of
}
