package admin

import (
	"context"
	"log/slog"
	"time"

	"rankfs/cache"
	"rankfs/cache/peers"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/group"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/meta/wire"
	"rankfs/shuffle/plan"
)

// A Config says what the answers are about.
type Config struct {
	Version, Mount, Dir, Socket string // Dir is of the daemon's state
	Since                       time.Time
	Host, Addr                  string // of this node, as others know it
	RAM                         int64  // the budget of the cache's memory
	HasNVMe                     bool

	State   *state.Machine
	Group   Group
	Owners  *plan.Owners
	Wire    *wire.Client // to other nodes
	Peers   *peers.Client
	HDFS    *hdfs.Clusters
	Catalog *catalog.Catalog
	Views   *views.Views
	Stalls  *stall.Table
	Drop    func(dataset string) // has the names of a dataset looked up again
	Log     *slog.Logger
}

// A Group is the cluster, as its members see and change it.
type Group interface {
	Self() string
	Status() group.Status
	Do(ctx context.Context, c state.Command) (state.Result, error)
	Observer
	Tokens
}

// An Observer says which nodes do not answer.
type Observer interface {
	Silent() []string  // of all
	Missing() []string // of the voters, by their hosts
}

// Tokens let nodes in.
type Tokens interface {
	MakeToken(ctx context.Context, life time.Duration, uses int, role state.Role) (trust.Token, error)
	DropToken(ctx context.Context, hash string) error
	Ready(ctx context.Context) error
}

// A daemon is the state that all parts share. Cache, tree, server and memory are set by Start.
type daemon struct {
	Config
	cache  *cache.Cache
	tree   *fs.Tree
	server *wire.Server
	memory func(cache.TierStats) control.Tier
}

// An Admin answers for a daemon. It implements control.Node and views.Watcher.
type Admin struct {
	*datasets
	*status
	*planning
	*kept
	*traces
	*queues
	*membership
}

var (
	_ control.Node  = (*Admin)(nil)
	_ views.Watcher = (*Admin)(nil)
)

// New makes an admin, which answers nothing before Start.
func New(c Config) *Admin {
	d := &daemon{Config: c}
	a := &Admin{
		datasets: &datasets{d}, planning: &planning{d}, queues: &queues{d}, membership: &membership{d},
		kept: &kept{daemon: d}, traces: &traces{daemon: d},
	}
	a.status = &status{d, a}
	return a
}

// Start takes the parts that serve batches, and reads the cache pins and traces.
// Until ctx is done warm-ups may go on in the background.
func (a *Admin) Start(ctx context.Context, c *cache.Cache, t *fs.Tree, s *wire.Server, memory func(cache.TierStats) control.Tier) (err error) {
	d := a.kept.daemon
	d.cache, d.tree, d.server, d.memory = c, t, s, memory
	a.kept.ctx = ctx
	if a.kept.pins, err = openCachePins(d.Dir, c.Pin); err != nil {
		return err
	}
	return a.traces.learnt.open(d.Dir)
}

// Wait waits for what goes on in the background, which ends soon after the context of
// Start.
func (a *Admin) Wait() { a.kept.tasks.Wait() }

// Planned implements views.Watcher: it notes the name of a view's plan, and gives the
// cache the trace that is kept for its dataset.
func (a *Admin) Planned(b *views.Batches) {
	a.kept.name(b)
	if _, ok := a.traces.learnt.find(b.View().Dataset); ok {
		a.traces.tellCache()
	}
}

// Found implements views.Watcher: it pins what the cache keeps of a pinned view.
func (a *Admin) Found(v meta.View, b *views.Batches) {
	plans, _ := b.Kept()
	a.kept.pins.meet(v.String(), plans)
}
