// Package node is one rankfs daemon: the catalog of its datasets, and the
// wiring of orders, sources, cache and tree into a mount.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/mounts"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/lmdb"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/group"
)

// A Config is what a node needs to know.
type Config struct {
	Mount, State      string
	RAMBytes          int64
	NVMe              []Disk // the first has copies of files too; without any there is no such tier
	NVMeFloor         Floor
	Private           bool    // other users can neither read the mount nor ask the daemon
	Admins            *uint32 // a group whose members may change things, as root may
	NoPassthrough     bool
	UID, GID, Umask   uint32
	RunDir, Version   string
	HadoopConf        string // directory; empty: HDFS is named by HOST:PORT alone
	HDFSUser          string // without Kerberos; empty: the one who runs the daemon
	HDFSActFor        string // whom that user, or who logs in, acts for; empty: nobody
	Keytab, Principal string // to log in with; empty: with TicketCache
	TicketCache       string // empty: that of kinit
	Krb5Conf          string // empty: /etc/krb5.conf
	Host              string // what others call this host; empty: as it calls itself
	Listen            string // HOST:PORT for other nodes; empty: loopback, any port
	Join, Token       string // a node of the cluster to join, and what lets this one in
	CachePolicy       string // of cache/policy.Names; empty: the first
	Log               *slog.Logger
}

// A Disk is a directory on a local disk and its budget, a Floor what is left
// free of its file system.
type (
	Disk  = disks.Dir
	Floor = disks.Floor
)

func (c Config) kerberos() namenode.Kerberos {
	return namenode.Kerberos{Principal: c.Principal, Keytab: c.Keytab, Cache: c.TicketCache, Conf: c.Krb5Conf}
}

// A Node is a running daemon. It implements control.Node.
type Node struct {
	config  Config
	since   time.Time
	socket  string
	ctx     context.Context // until the mount is gone
	tasks   sync.WaitGroup  // of the node's own, which end with ctx
	hdfs    *hdfs.Clusters
	member  *member
	catalog *catalog.Catalog
	serving atomic.Pointer[catalog.Catalog] // as soon as other nodes may ask it
	drop    func(dataset string)            // has names of a dataset looked up again
	sizes   *batch.Sizes
	cache   *cache.Cache
	memory  memory
	stays   *stays
	titles  titles
	learnt  learnt
	warmUps warmUps
	stalls  *stall.Table
	tree    *fs.Tree
}

// Run serves a mount until ctx is done or somebody unmounts it. It calls ready
// once the mount can be used. It builds bottom up and, by defer, takes down
// top first: the mount goes before the cache that it asks.
func Run(ctx context.Context, c Config, ready func()) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Copies keep a scheduler's processor busy for milliseconds. With as many
	// more for the requests of the kernel, the operating system decides who
	// runs, and it lets in who has waited.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * runtime.NumCPU()))
	held, err := takeOver(ctx, c)
	if err != nil {
		return err
	}
	c.Mount = held.point
	defer held.release()
	registration := held.registration
	defer func() { err = errors.Join(err, registration.Close()) }()
	if !c.Private {
		if err := registration.Share(); err != nil {
			return err
		}
	}

	n := &Node{config: c, since: time.Now(), socket: registration.Socket, ctx: ctx, stalls: stall.NewTable(time.Now)}
	leader := dispatch.NewLeader()
	if n.member, err = openMember(ctx, c, map[string]group.Handler{
		dispatch.CallTake: leader.Take, dispatch.CallPeek: leader.Peek, catalog.CallServed: n.served,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.member.close()) }()
	if err := n.member.catchUp(ctx); err != nil {
		return err
	}
	h := hdfs.Config{
		Conf: c.HadoopConf, Host: n.member.host, User: c.HDFSUser, ActFor: c.HDFSActFor, Kerberos: c.kerberos(),
		Scratch: filepath.Join(c.State, "indexing"), Log: c.Log, Space: n,
	}
	if len(c.NVMe) > 0 {
		h.Copies = filepath.Join(c.NVMe[0].Path, "copies")
	}
	n.hdfs, err = hdfs.New(h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.hdfs.Close()) }()
	env := &fetch.Env{Pins: new(lmdb.Pins), HDFS: n.hdfs}
	n.drop = func(dataset string) { n.tree.Drop(dataset) }
	n.catalog, err = catalog.New(catalog.Config{
		Dir: filepath.Join(c.State, "indexes"), State: n.member.machine, Cluster: n.member.group, Fetch: n.member.peers.Fetch,
		Self: n.member.group.Self(), Env: env, Owners: &n.member.owners, Dropped: n.drop, Log: c.Log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.catalog.Close()) }()
	n.catalog.Update(ctx)
	if n.sizes, err = batch.NewSizes(); err != nil {
		return err
	}
	defer n.sizes.Close()
	n.tree = fs.New(fs.Config{
		Catalog: n, Info: n.info(), UID: c.UID, GID: c.GID, Umask: c.Umask,
		AllowOther: !c.Private, NoPassthrough: c.NoPassthrough, Log: c.Log,
	})
	n.cache, err = cache.New(cache.Config{
		RAMBytes: c.RAMBytes, NVMe: c.NVMe, NVMeFloor: c.NVMeFloor, Policy: c.CachePolicy,
		Backing: n.tree, Log: c.Log, Stalls: n.stalls, Crowded: n.tellCrowd, Holds: holds,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.cache.Close()) }()
	n.memory = watchMemory(c, n.cache)
	if n.stays, err = openStays(c.State, n.cache.Pin); err != nil {
		return err
	}
	if err := n.learnt.open(c.State); err != nil {
		return err
	}
	n.catalog.Retain() // now that the disk is ours
	if err := n.member.offer(store{n.server(), n.catalog}); err != nil {
		return err
	}
	defer func() { cancel(); n.tasks.Wait() }()
	n.serving.Store(n.catalog)
	n.tasks.Go(func() { n.catalog.Follow(ctx) })
	n.tasks.Go(func() { n.member.follow(ctx, n.drop) })
	n.tasks.Go(func() { n.member.serve(ctx) })
	n.tasks.Go(func() { n.memory.follow(ctx) })
	n.tasks.Go(n.meetStays)
	leader.Start(dispatch.Config{Group: n.member.group, Machine: n.member.machine, Units: n.units, Log: c.Log})
	n.tasks.Go(func() { leader.Follow(ctx) })
	if err := n.tree.Mount(c.Mount); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.tree.Unmount(c.Mount, true)) }()

	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, registration.Listener, n, control.Admin{Group: c.Admins}, c.Log) }()
	defer func() { cancel(); err = errors.Join(err, <-served) }()
	unmounted := make(chan struct{})
	go func() { n.tree.Wait(); close(unmounted) }()

	n.announce()
	ready()
	select {
	case <-ctx.Done():
	case <-unmounted:
	}
	c.Log.Info("unmounting", "mount", c.Mount)
	return nil
}

// served answers another node once this one serves a dataset.
func (n *Node) served(ctx context.Context, _ string, request json.RawMessage) (any, error) {
	c := n.serving.Load()
	if c == nil {
		return nil, meta.Worded(meta.ErrUnavailable, "this node begins")
	}
	return nil, c.Served(ctx, request)
}

// Reserve implements hdfs.Space.
func (n *Node) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	return n.cache.Reserve(ctx, bytes)
}

// announce says what was mounted, and loudly what is not as it should be.
func (n *Node) announce() {
	on, reason := n.tree.Passthrough()
	n.config.Log.Info("mounted", "mount", n.config.Mount, "state", n.config.State, "passthrough", on)
	if !on {
		n.config.Log.Warn("passthrough is off: every byte goes through the daemon, some 20 times slower", "reason", reason)
	}
}

// mountPoint makes dir absolute, and free if a dead daemon left its mount there.
func mountPoint(dir string) (string, error) {
	point, err := mounts.Resolve(dir)
	if err != nil {
		return "", err
	}
	if _, err := mounts.Clean(point); err != nil {
		return "", err
	}
	info, err := os.Stat(point)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("mount point %s %w; make it with: mkdir -p %[1]s", point, meta.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("mount point: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("mount point %s %w: it is not a directory; make another with: mkdir -p DIR", point, meta.ErrInvalid)
	}
	return point, nil
}

// lockState makes the state directory this daemon's own.
func lockState(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("state directory: %w; choose another with --state", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w; choose another with --state", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("state directory %s %w: another rankfs uses it; choose another with --state", dir, meta.ErrBusy)
	}
	return func() { lock.Close() }, nil
}
