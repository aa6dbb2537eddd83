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
	*planning
	*queues
	*membership
	*shuffles
	*supplied
	*status
	*summaries
	*kept.Kept
}

var _ control.Node = (*Admin)(nil)

// New makes an admin, which answers nothing before Start.
func New(c Config) *Admin {
	r := rights{c.Group.Self(), c.State}
	a := &Admin{
		datasets:   &datasets{catalog: c.Catalog, views: c.Views, rights: r, log: c.Log},
		planning:   &planning{host: c.Host, views: c.Views, state: c.State, commands: c.Group, hdfs: c.HDFS, drop: c.Drop},
		queues:     &queues{state: c.State, views: c.Views, commands: c.Group, rights: r, log: c.Log},
		membership: &membership{addr: c.Addr, state: c.State, members: c.Group, commands: c.Group, tokens: c.Group, rights: r, log: c.Log},
		shuffles:   &shuffles{pool: c.Pool, state: c.State},
		Kept:       c.Kept,
	}
	s := &supply{kept: c.Kept, stalls: c.Stalls, catalog: c.Catalog}
	a.supplied = &supplied{
		mount: c.Mount, host: c.Host, since: c.Since, members: c.Group, workers: c.Kept, views: c.Views, supply: s, shuffles: a.shuffles,
	}
	a.status = &status{
		daemon: daemon{version: c.Version, mount: c.Mount, dir: c.Dir, socket: c.Socket, since: c.Since},
		hdfs:   c.HDFS, supply: s, shuffles: a.shuffles, members: a.membership, datasets: a.datasets, queues: a.queues, health: newHealth(time.Now),
		peers: &peers{client: c.Wire, hedged: c.Peers, hosts: c.State},
		faults: &faults{
			host: c.Host, called: c.Called, log: c.Group, state: c.State, catalog: c.Catalog, hdfs: c.HDFS, poolRefusal: c.PoolRefusal,
			kept: c.Kept, memory: c.Views.Memory, members: a.membership, datasets: a.datasets, queues: a.queues, shuffles: a.shuffles,
		},
		tables: &tables{members: a.membership, shuffles: a.shuffles, state: c.State, opened: c.Kept.Opened},
	}
	a.summaries = &summaries{here: a.status, members: a.membership, cluster: c.Group}
	return a
}

// Start takes the parts that serve batches.
func (a *Admin) Start(t *fs.Tree, s *wire.Server) {
	a.status.tree, a.status.faults.tree, a.status.supply.tree = t, t, t
	a.status.peers.server = s
}
