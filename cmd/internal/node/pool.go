package node

import (
	"context"
	"path/filepath"
	"time"

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
		Dir: filepath.Join(c.State, "pool"), RAM: c.PoolRAM, Used: func(bytes int64) { n.cache.Yield(bytes) },
		Guest: c.PoolGuest,
		Disk:  pool.Disk{Dir: c.PoolNVMe.Path, Bytes: c.PoolNVMe.Bytes}, State: m.machine, Cluster: m.group, Member: m.group,
		Wire: m.wire, Log: c.Log,
		Nodes: n.nodesUp,
		Hosts: func() int { return pool.Hosts(m.machine.Nodes()) },
		Forget: func() {
			if tree := n.poolTree.Load(); tree != nil {
				tree.Forget()
			}
		},
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

// servePool mounts the pool below the mount, once that is served, and again if it was
// unmounted and the mount was not: an umount that finds the mount busy has taken the
// pool's away before. Detached as one, each of the two goes with its own last user: gone waits
// for that of the pool.
func (n *node) servePool(ctx context.Context) (end func() error, gone func(), err error) {
	n.pool.Offer(ctx)
	dir := filepath.Join(n.config.Mount, meta.PoolDir)
	tree, err := n.mountPool(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := mounts.Note(ctx, n.config.Mount); err != nil {
		n.config.Log.Warn("umount(8) will find the mount busy, as the shuffle pool is mounted below it; use rankfs umount", "cause", err)
	}
	mounted := make(chan *pooltree.Tree, 1)
	mounted <- tree
	now := func() *pooltree.Tree {
		tree := <-mounted
		mounted <- tree
		return tree
	}
	ctx, cancel := context.WithCancel(ctx)
	n.tasks.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-now().Gone():
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second): // the mount goes now, or not at all
			}
			again, err := n.mountPool(dir)
			if err != nil {
				n.config.Log.Error("the shuffle pool is not mounted any more", "cause", err)
				return
			}
			<-mounted
			mounted <- again
		}
	})
	end = func() error {
		cancel()
		err := now().Unmount(dir)
		if late := mounts.Unnote(context.WithoutCancel(ctx), n.config.Mount); late != nil {
			n.config.Log.Debug("the table of mount(8) keeps a line", "cause", late)
		}
		return err
	}
	return end, func() { <-now().Gone() }, nil
}

// mountPool mounts the pool, and has the names that the kernel knows there forgotten when they
// are gone.
func (n *node) mountPool(dir string) (*pooltree.Tree, error) {
	on, _ := n.tree.Passthrough()
	tree := pooltree.New(pooltree.Config{
		Pool: pooled.Of(n.pool), Errnos: n.tree.Errnos(), Born: n.tree.Born(), AllowOther: !n.config.Private, Passthrough: on, Log: n.config.Log,
	})
	if err := tree.Mount(dir); err != nil {
		return nil, err
	}
	n.poolTree.Store(tree)
	return tree, nil
}

// poolRefusal is why files of the pool go through the daemon, although others do not; empty if
// none do.
func (n *node) poolRefusal() string {
	if tree := n.poolTree.Load(); tree != nil {
		return tree.Refusal()
	}
	return ""
}
