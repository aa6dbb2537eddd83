package node

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"rankfs/cache"
	"rankfs/cache/blobs"
	"rankfs/cmd/internal/admin"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/kept"
	"rankfs/cmd/internal/pooled"
	"rankfs/cmd/internal/views"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/lmdb"
	"rankfs/fetch/peers"
	"rankfs/fetch/splits"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/stall"
)

// Run serves a mount until ctx is done or the mount is unmounted. It calls ready once the
// mount can be used. It builds bottom up, and takes down top first: the mount goes before
// the cache that it asks.
func Run(ctx context.Context, c Config, ready func()) (err error) {
	// Copies keep a scheduler's processor busy for milliseconds. With as many
	// more for the requests of the kernel, the operating system decides which
	// thread runs, and it prefers one that has waited.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * runtime.NumCPU()))
	if err := c.Check(); err != nil {
		return err
	}
	held, err := takeOver(ctx, c)
	if err != nil {
		return err
	}
	c.Mount = held.point
	defer held.release()
	n := &node{config: c, stalls: stall.NewTable(time.Now)}
	n.ctx, n.cancel = context.WithCancel(ctx)
	defer n.cancel()
	n.atEnd(held.entry.Close)
	defer func() { err = errors.Join(err, n.close()) }()
	if !c.Private {
		if err := held.entry.Share(); err != nil {
			return err
		}
	}
	asked := &asked{leader: dispatch.NewLeader()}
	if err := n.open(held, asked); err != nil {
		return err
	}
	if err := n.build(held.entry.Socket); err != nil {
		return err
	}
	if err := n.start(asked.leader); err != nil {
		return err
	}
	n.atEnd(n.wait)
	asked.catalog.Store(n.catalog)
	asked.admin.Store(n.admin)
	unmounted, err := n.serve(held.entry.Listener)
	if err != nil {
		return err
	}
	ready()
	select {
	case <-n.ctx.Done():
	case <-unmounted:
	}
	c.Log.Info("unmounting", "mount", c.Mount)
	return nil
}

// open makes this node a member of its cluster, and has it know what that knows.
func (n *node) open(held exclusive, a *asked) (err error) {
	n.member, err = openMember(n.ctx, n.config, held.tcp, a.calls())
	if n.config.Join != "" && errors.Is(err, meta.ErrDenied) {
		held.forget()
	}
	if err != nil {
		return err
	}
	n.atEnd(n.member.close)
	return n.member.catchUp(n.ctx)
}

// build makes the parts above the member. They do nothing yet that they are not asked for.
func (n *node) build(socket string) (err error) {
	c, m := n.config, n.member
	clusters, err := hdfs.New(c.hdfs(m.called, n))
	if err != nil {
		return err
	}
	n.atEnd(clusters.Close)
	all := n.newPool()
	n.offering = all.KeepOffering
	if c.PoolRAM > 0 {
		n.pool = all
	}
	n.env = &fetch.Env{Holds: new(lmdb.Holds), HDFS: clusters, Pool: all, Mount: c.Mount}
	if n.catalog, err = n.newCatalog(); err != nil {
		return err
	}
	n.atEnd(n.catalog.Close)
	n.catalog.Update(n.ctx)
	sizes, err := batch.NewSizes()
	if err != nil {
		return err
	}
	n.atEnd(func() error { sizes.Close(); return nil })
	n.readers = dispatch.NewReaders(m.group, m.machine)
	n.views = n.newViews(sizes)
	n.kept = kept.New(kept.Config{
		Dir: c.State, RAM: c.RAMBytes, HasNVMe: len(c.NVMe) > 0, Catalog: n.catalog, Views: n.views, Owners: m.owners, Log: c.Log,
	})
	n.admin = n.newAdmin(socket)
	n.tree = fs.New(fs.Config{
		Catalog: n.views, Info: n.admin.Files(), UID: c.UID, GID: c.GID, Umask: c.Umask,
		AllowOther: !c.Private, Pool: n.pool != nil, NoPassthrough: c.NoPassthrough, Log: c.Log,
	})
	n.cache, err = cache.New(cache.Config{
		RAMBytes: c.RAMBytes, NVMe: c.NVMe, NVMeFloor: c.NVMeFloor, Policy: c.CachePolicy,
		Backing: n.tree, Log: c.Log, Stalls: n.stalls, Shortage: n.views.Memory.LogShortage, Holds: views.Holds,
	})
	if err != nil {
		return err
	}
	n.atEnd(n.cache.Close)
	return nil
}

// serve mounts the tree, and answers commands. The channel is closed when the tree was
// unmounted by another process.
func (n *node) serve(commands net.Listener) (unmounted <-chan struct{}, err error) {
	c := n.config
	if err := n.tree.Mount(c.Mount); err != nil {
		return nil, err
	}
	n.atEnd(func() error { return n.tree.Unmount(c.Mount, true) })
	wait := n.tree.Wait
	if n.pool != nil {
		if err := n.mountPool(); err != nil {
			return nil, err
		}
		wait = func() { n.tree.Wait(); n.poolMount.Wait() }
	}
	served := make(chan error, 1)
	go func() { served <- control.Serve(n.ctx, commands, n.admin, control.Admin{Group: c.Admins}, c.Log) }()
	n.atEnd(func() error { n.cancel(); return <-served })
	gone := make(chan struct{})
	go func() { wait(); close(gone) }()

	n.admin.Look()
	n.tasks.Go(func() { n.admin.Watch(n.ctx) })
	n.announce()
	return gone, nil
}

// hdfs says how clusters of HDFS are reached, and where what is copied from them lies.
func (c Config) hdfs(host string, room blobs.Room) hdfs.Config {
	h := hdfs.Config{
		Conf: c.HadoopConf, Host: host, User: c.HDFSUser, ActFor: c.HDFSActFor, Kerberos: c.kerberos(),
		Scratch: c.indexing(), Log: c.Log,
	}
	if len(c.NVMe) > 0 {
		h.Copies = copies{blobs.New(blobs.Config{Room: room, Folder: hdfs.CopyFolder, Suffix: hdfs.CopySuffix, Log: c.Log})}
	}
	return h
}

func (n *node) newCatalog() (*catalog.Catalog, error) {
	m := n.member
	return catalog.New(catalog.Config{
		Dir: filepath.Join(n.config.State, "indexes"), State: m.machine, Cluster: m.group, Fetch: m.peers.Fetch, Find: m.peers.Find,
		Self: m.group.Self(), Env: n.env, Owners: m.owners,
		Drop: n.drop, Registered: n.registered, Log: n.config.Log,
	})
}

func (n *node) newViews(sizes *batch.Sizes) *views.Views {
	m, c := n.member, n.config
	return views.New(views.Config{
		Mount: c.Mount, Host: m.host, RAM: c.RAMBytes, NVMe: c.nvmeBytes(), Slab: cache.Config{RAMBytes: c.RAMBytes, NVMe: c.NVMe}.LargestSlab(),
		Catalog: n.catalog, State: m.machine, Cluster: m.group, Owners: m.owners,
		Readers: n.readers, Peers: m.peers, Sizes: sizes, Stalls: n.stalls,
		Drop: n.drop, Log: c.Log,
	})
}

func (n *node) newAdmin(socket string) *admin.Admin {
	m, c := n.member, n.config
	return admin.New(admin.Config{
		Version: c.Version, Mount: c.Mount, Dir: c.State, Socket: socket, Since: time.Now(),
		Host: m.host, Called: m.called, Addr: m.addr(), State: m.machine, Group: m.group, Wire: m.wire, Peers: m.peers, HDFS: n.env.HDFS,
		Catalog: n.catalog, Views: n.views, Kept: n.kept, Stalls: n.stalls, Pool: n.pool, PoolRefusal: n.poolMount.Refusal, Drop: n.drop, Log: c.Log,
	})
}

// start runs what the parts do without being asked, once the cache is there.
func (n *node) start(leader *dispatch.Leader) error {
	m, ctx := n.member, n.ctx
	finder := splits.NewFinder(n.config.indexing(), peers.MaxFound, n.env.Looks())
	if err := m.offer(store{n.views.Server(), n.catalog}, finder.Find, n.pool); err != nil {
		return err
	}
	memory, watch := watchMemory(n.config, n.cache)
	n.admin.Start(n.tree, m.server)
	if err := n.kept.Start(ctx, n.cache, memory); err != nil {
		return err
	}
	n.views.Start(ctx, n.cache, n.kept)
	if n.pool != nil {
		if err := n.pool.Start(ctx, &pooled.Parts{Cache: n.cache}); err != nil {
			return err
		}
		n.tasks.Go(func() { n.pool.Follow(ctx) })
	}
	n.catalog.Retain() // now that the disk is ours
	leader.Start(dispatch.Config{Group: m.group, Machine: m.machine, Units: n.views.Units, Log: n.config.Log})
	for _, task := range []func(context.Context){
		n.offering, n.catalog.Follow, m.follow, n.views.Follow, m.serve, watch, n.kept.RestorePins, leader.Follow, n.retire,
	} {
		n.tasks.Go(func() { task(ctx) })
	}
	return nil
}

// retire has the readers of queues leave that an earlier daemon has left open, once the
// cluster knows of this one.
func (n *node) retire(ctx context.Context) {
	if n.member.group.Begun(ctx) == nil {
		n.readers.Retire(ctx, n.config.Log)
	}
}

// wait ends ctx, and waits for all that ends with it.
func (n *node) wait() error {
	n.cancel()
	n.tasks.Wait()
	n.views.Wait()
	n.kept.Wait()
	return nil
}

// announce logs the mount, and warns of what is not as it should be.
func (n *node) announce() {
	on, reason := n.tree.Passthrough()
	n.config.Log.Info("mounted", "mount", n.config.Mount, "state", n.config.State, "passthrough", on)
	if !on {
		n.config.Log.Warn("passthrough is off: every byte goes through the daemon, some 20 times slower", "reason", reason)
	}
}
