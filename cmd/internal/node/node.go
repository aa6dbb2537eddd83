package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/cache"
	"rankfs/cache/blobs"
	"rankfs/cache/disks"
	"rankfs/cmd/internal/admin"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/kept"
	"rankfs/cmd/internal/pooled"
	"rankfs/cmd/internal/views"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/group"
	"rankfs/meta/stall"
	"rankfs/shuffle/pool"
)

// A node is a daemon's parts, for as long as they are put together.
type node struct {
	config  Config
	ctx     context.Context // until the mount is gone
	cancel  context.CancelFunc
	ends    []func() error // of the parts, the first that was built first
	tasks   sync.WaitGroup // which end with ctx
	member  *member
	env     *fetch.Env // what sources share
	catalog *catalog.Catalog
	stalls  *stall.Table
	views   *views.Views
	readers *dispatch.Readers // of queues
	kept    *kept.Kept
	admin   *admin.Admin
	tree    *fs.Tree
	cache   *cache.Cache
	pool    *pool.Pool // nil if this node has none

	poolMount pooled.Mount
	offering  func(context.Context) // says what this node has for the pool, if only nothing
}

// atEnd has a part that was built just now taken down before all others.
func (n *node) atEnd(end func() error) { n.ends = append(n.ends, end) }

// close takes down what was built.
func (n *node) close() (err error) {
	for _, end := range slices.Backward(n.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// drop has the names of a dataset looked up again.
func (n *node) drop(dataset string) { n.tree.Drop(dataset) }

// registered has nothing kept for a dataset whose name another has. What is there when the
// daemon begins is looked at when the cache is there.
func (n *node) registered(dataset string, at time.Time) {
	if n.kept != nil {
		n.kept.Registered(dataset, at)
	}
}

// Folders implements blobs.Room, for copies that are asked for once there is
// a cache.
func (n *node) Folders(name string) []*disks.Folder { return n.cache.Folders(name) }

// Reserve implements blobs.Room.
func (n *node) Reserve(ctx context.Context, bytes int64, in string) (*disks.Reservation, error) {
	return n.cache.Reserve(ctx, bytes, in)
}

// copies are blobs, with the methods that an hdfs.Config asks for.
type copies struct{ *blobs.Store }

// Take implements hdfs.Copies.
func (c copies) Take(ctx context.Context, key string, size int64, make func(context.Context, hdfs.Unfinished) error, told func(bytes int64)) (hdfs.Copy, error) {
	b, err := c.Store.Take(ctx, key, size, func(ctx context.Context, b *blobs.Blob) error { return make(ctx, b) }, told)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// A store serves records and files to other nodes. It is a peers.Store.
type store struct {
	batch.Server
	*catalog.Catalog
}

// asked has the parts of this node that answer others. A node that asks before there is such a
// part is told that this one begins.
type asked struct {
	leader  *dispatch.Leader
	catalog atomic.Pointer[catalog.Catalog]
	admin   atomic.Pointer[admin.Admin]
}

func (a *asked) calls() map[string]group.Handler {
	return map[string]group.Handler{
		dispatch.CallTake: a.leader.Take, dispatch.CallPeek: a.leader.Peek,
		catalog.CallServed: a.ofCatalog((*catalog.Catalog).Served), catalog.CallChanged: a.ofCatalog((*catalog.Catalog).Changed),
		admin.CallSummary: a.summary,
	}
}

var errEarly = meta.Worded(meta.ErrUnavailable, "this node begins")

// ofCatalog answers another node: once this one serves a dataset, or whether a source that it
// alone has is what was indexed.
func (a *asked) ofCatalog(answer func(*catalog.Catalog, context.Context, json.RawMessage) error) group.Handler {
	return func(ctx context.Context, _ string, request json.RawMessage) (any, error) {
		c := a.catalog.Load()
		if c == nil {
			return nil, errEarly
		}
		return nil, answer(c, ctx, request)
	}
}

// summary answers another node with the status of this one in short.
func (a *asked) summary(context.Context, string, json.RawMessage) (any, error) {
	is := a.admin.Load()
	if is == nil {
		return nil, errEarly
	}
	return is.Summary(), nil
}
