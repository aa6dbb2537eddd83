package node

import (
	"context"
	"path/filepath"

	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/pooled"
	"rankfs/fs/pooltree"
	"rankfs/meta"
	"rankfs/shuffle/placement"
	"rankfs/shuffle/pool"
)

// newPool makes this node's part of the shuffle pool. Without memory for that it reads what
// datasets are made of from other nodes, and is not started.
func (n *node) newPool() *pool.Pool {
	c, m := n.config, n.member
	return pool.New(pool.Config{
		Dir: c.pool(), RAM: c.PoolRAM, Used: func(bytes int64) { n.cache.Yield(bytes) },
		Guest: c.PoolGuest,
		Disk:  pool.Disk{Dir: c.PoolNVMe.Path, Bytes: c.PoolNVMe.Bytes}, State: m.machine, Cluster: m.group, Member: m.group,
		Wire: m.wire, Log: c.Log,
		Nodes:  n.nodesUp,
		Hosts:  func() int { return pool.Hosts(m.machine.Nodes()) },
		Forget: n.poolMount.Forget,
	})
}

// nodesUp are the nodes that are up, in the racks that sources know.
func (n *node) nodesUp() []placement.Node {
	self := n.member.group.Self()
	if n.config.PoolGuest {
		self = ""
	}
	all := pool.NodesUp(n.member.machine.Nodes(), self)
	for i := range all {
		all[i].Rack = n.catalog.Rack(all[i].Host)
	}
	return all
}

// mountPool mounts the pool below the mount, once that is served.
func (n *node) mountPool() error {
	n.pool.Offer(n.ctx)
	on, _ := n.tree.Passthrough()
	err := n.poolMount.Start(n.ctx, filepath.Join(n.config.Mount, meta.PoolDir), pooltree.Config{
		Pool: pooled.Of(n.pool), Errnos: n.tree.Errnos(), Born: n.tree.Born(), AllowOther: !n.config.Private, Passthrough: on, Log: n.config.Log,
	})
	if err != nil {
		return err
	}
	if err := mounts.Note(n.ctx, n.config.Mount); err != nil {
		n.config.Log.Warn("umount(8) will find the mount busy, as the shuffle pool is mounted below it; use rankfs umount", "cause", err)
	}
	n.atEnd(func() error {
		err := n.poolMount.Close()
		if late := mounts.Unnote(context.WithoutCancel(n.ctx), n.config.Mount); late != nil {
			n.config.Log.Debug("the table of mount(8) keeps a line", "cause", late)
		}
		return err
	})
	return nil
}
