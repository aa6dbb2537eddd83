package admin

import (
	"context"
	"log/slog"
	"time"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/kept"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/hdfs"
	"rankfs/meta/group"
	"rankfs/meta/stall"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/meta/wire"
	"rankfs/shuffle/pool"
)

// A Config says what the answers are about.
type Config struct {
	Version, Mount, Dir, Socket string // Dir is of the daemon's state
	Since                       time.Time
	Host, Addr                  string // of this node, as others know it
	Called                      string // what the host is called now

	State   *state.Machine
	Group   Group
	Wire    *wire.Client // to other nodes
	Peers   interface{ Hedges() (begun, won uint64) }
	HDFS    *hdfs.Clusters
	Catalog *catalog.Catalog
	Views   *views.Views
	Kept    *kept.Kept
	Stalls  *stall.Table
	Pool    *pool.Pool           // nil: this node has none
	Drop    func(dataset string) // has the names of a dataset looked up again
	Log     *slog.Logger

	PoolRefusal func() string // why files of the pool go through the daemon, although others do not
}

// A Group is the cluster, as its members see and change it.
type Group interface {
	Members
	Commands
	Tokens
	Ask(ctx context.Context, id, name string, request, result any) error // a call of another node, or of this one
	Unwritten() error                                                    // why this node's log is not written, if so
}

// Members are the nodes of the cluster, of which this is one, and which of them do not answer.
type Members interface {
	Self() string
	Status() group.Status
	Silent() []string  // of all
	Missing() []string // of the voters, by their hosts
}

// Commands change what the cluster has agreed on.
type Commands interface {
	Do(ctx context.Context, c state.Command) (state.Result, error)
}

// Tokens let nodes in.
type Tokens interface {
	MakeToken(ctx context.Context, life time.Duration, uses int, role state.Role) (trust.Token, error)
	DropToken(ctx context.Context, hash string) error
	Ready(ctx context.Context) error
}

// hosts says on which host a node is.
type hosts interface{ HostOf(node string) string }
