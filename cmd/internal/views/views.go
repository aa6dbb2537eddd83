package views

import (
	"context"
	"fmt"
	"log/slog"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/stall"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A Config says what the views of a node are made of.
type Config struct {
	Mount string
	Host  string // what others call this host
	RAM   int64  // the budget of the cache's memory
	NVMe  int64  // and of its disks
	Slab  int64  // the most that one slab may take of these

	Catalog *catalog.Catalog
	State   *state.Machine // what the cluster agreed on
	Cluster Cluster
	Owners  *plan.Owners
	Readers *dispatch.Readers // of queues
	Peers   batch.Peers
	Sizes   *batch.Sizes
	Stalls  *stall.Table
	Drop    func(dataset string) // has the names of a dataset looked up again
	Log     *slog.Logger
}

// Views are the views of a node. They implement fs.Catalog, and may be used concurrently.
type Views struct {
	config  Config
	tasks   tasks
	cache   *cache.Cache // set by Start
	maker   *maker
	settled *settledPlans
	queues  *queues

	Ranks  *Ranks  // where they are
	Memory *Memory // how much of it they need
}

// New makes the views of a node, which are not to be used before Start.
func New(c Config) *Views {
	ranks := &Ranks{state: c.State, self: c.Cluster.Self(), host: c.Host}
	vs := &Views{
		config:  c,
		maker:   &maker{host: c.Host, ram: c.RAM, sizes: c.Sizes, peers: c.Peers, owners: c.Owners, ranks: ranks, log: c.Log},
		settled: &settledPlans{state: c.State, drop: c.Drop},
		Ranks:   ranks,
		Memory:  &Memory{ram: c.RAM, nvme: c.NVMe, slab: c.Slab, ranks: ranks, log: c.Log},
	}
	vs.queues = &queues{mount: c.Mount, readers: c.Readers, tasks: &vs.tasks, log: c.Log}
	return vs
}

// Start says where slabs come from, and what watches the views. Until ctx is done they
// tell the cluster where ranks are opened.
func (vs *Views) Start(ctx context.Context, c *cache.Cache, w Watcher) {
	vs.tasks.ctx, vs.cache = ctx, c
	vs.maker.cache, vs.maker.watcher = c, w
	vs.Memory.cache = c
}

// Wait waits for what goes on behind opens, which ends soon after the context of Start.
func (vs *Views) Wait() { vs.tasks.Wait() }

// Follow has names looked up again whose plans were unsettled, until ctx is done.
func (vs *Views) Follow(ctx context.Context) { vs.settled.follow(ctx) }

// Resolve returns the view that a name stands for, and its dataset.
func (vs *Views) Resolve(name string) (v meta.View, d *catalog.Dataset, err error) {
	base, options, isView := meta.SplitView(name)
	if d, err = vs.config.Catalog.Get(base); err != nil {
		return v, nil, err
	}
	v = d.Default
	if isView {
		if v, err = v.With(options); err != nil {
			return v, nil, err
		}
	}
	if !v.ByChunk() && !d.Version.Index.CountsRecords() {
		return v, nil, fmt.Errorf("view %q %w: the records of %s were not counted, as its batches are chunks; count them with: rankfs dataset refresh %s --records",
			name, meta.ErrInvalid, base, base)
	}
	if c, most := cutOf(v, d), max(cutOf(d.Default, d).Global, maxPadded); c.Tail == meta.TailPad && c.Global > max(c.N, most) {
		return v, nil, fmt.Errorf("view %q %w: tail=pad would fill a step of %d with the same %d records again and again: make steps of %d at most, by smaller batches or fewer ranks, or leave tail=pad out",
			name, meta.ErrInvalid, c.Global, c.N, max(c.N, most))
	}
	return v, d, nil
}

// maxPadded is how many records a step that is padded may have where a dataset has fewer,
// and its own steps have: a user who may look can ask for any view, and what is asked about a
// batch, its size first, goes over all its records.
const maxPadded = 1 << 22

func cutOf(v meta.View, d *catalog.Dataset) meta.Cut {
	x := d.Version.Index
	return v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
}

// Server gives other nodes records of the datasets of this one.
func (vs *Views) Server() batch.Server {
	return batch.Server{
		Find:  vs.config.Catalog.ByIndex,
		Slabs: func(v *batch.Version) batch.Slabs { return chunksForOthers{newChunkSlabs(v, v.Readers()), vs.cache} },
	}
}
