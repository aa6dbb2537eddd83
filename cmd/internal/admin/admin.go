package admin

import (
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/kept"
	"rankfs/fs"
	"rankfs/meta/wire"
)

// An Admin answers for a daemon. It implements control.Node.
type Admin struct {
	*datasets
	*status
	*planning
	*queues
	*membership
	*shuffles
	*kept.Kept
}

// A status says how the daemon is, and how it supplies jobs: the one part that asks the
// others.
type status struct {
	*daemon
	all    *Admin // whose other parts have something to warn of
	health *health
}

var _ control.Node = (*Admin)(nil)

// New makes an admin, which answers nothing before Start.
func New(c Config) *Admin {
	d := &daemon{Config: c}
	a := &Admin{
		datasets: &datasets{d}, planning: &planning{d}, queues: &queues{d}, membership: &membership{d}, shuffles: &shuffles{d}, Kept: c.Kept,
	}
	a.status = &status{daemon: d, all: a, health: newHealth(time.Now)}
	return a
}

// Start takes the parts that serve batches.
func (a *Admin) Start(t *fs.Tree, s *wire.Server) { a.status.tree, a.status.server = t, s }
