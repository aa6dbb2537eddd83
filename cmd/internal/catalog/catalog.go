package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/peers"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A Config says what a catalog is made of.
type Config struct {
	Dir     string // of indexes
	State   State  // what the cluster agreed on
	Cluster Cluster
	Fetch   Fetch
	Find    Finder
	Self    string // the id of this node
	Env     *fetch.Env
	Owners  *plan.Owners
	Drop    func(name string) // called when a name no longer stands for what it did
	Log     *slog.Logger

	// Registered is called when a name comes to stand for another registration, with the
	// time of that, or zero if the name is gone. A refresh is none.
	Registered func(name string, at time.Time)
}

// State is what the cluster agreed on, as far as this node knows. It is used concurrently.
type State interface {
	Datasets() []state.Dataset
	ClusterChanged() <-chan struct{}
	Nodes
}

// Nodes are those of the cluster, as far as this one knows.
type Nodes interface {
	Nodes() []state.Node
	Version() int // of the commands that all of them understand
}

// A Cluster lets a catalog have the nodes agree on a command, and call one of them.
type Cluster interface {
	Do(ctx context.Context, c state.Command) (state.Result, error)
	Ask(ctx context.Context, node, call string, request, reply any) error
}

// A Fetch copies an index from another node to a path, whole or not at all.
type Fetch func(ctx context.Context, node string, hash peers.ID, path string) error

// A Finder has another node look through a split of a source of a scheme, and writes to w
// what it found. If it is nil no other node is asked.
type Finder func(ctx context.Context, node, scheme string, what []byte, w io.Writer) error

// A Catalog is the set of registered datasets as this node serves them.
//
// Update alone changes byName, on one goroutine at a time: first the caller that
// starts the daemon, then Follow. Others change the cluster's state and wait. While mu
// is held no source and no file is touched.
type Catalog struct {
	config  Config
	indexes *indexes

	loose     bool       // Update has taken out a dataset, whose index and copies may go; of its goroutine
	endings   *endings   // of what was taken out
	racks     racks      // as the datasets say
	retaining sync.Mutex // before mu

	mu struct {
		sync.Mutex
		byName   map[string]*Dataset
		indexing map[string]bool // names for which an index is being made
		failed   map[string]failure
		updated  chan struct{} // closed at the next update
	}
}

// A failure is why a dataset is not served here.
type failure struct {
	generation uint64
	err        error
}

// New makes a catalog that is empty until Update.
func New(c Config) (*Catalog, error) {
	x, err := openIndexes(c.Dir)
	if err != nil {
		return nil, err
	}
	k := &Catalog{config: c, indexes: x, endings: newEndings(c.Log)}
	k.mu.byName, k.mu.indexing, k.mu.failed = make(map[string]*Dataset), make(map[string]bool), make(map[string]failure)
	k.mu.updated = make(chan struct{})
	c.Env.Base = k.base
	return k, nil
}

// Get is the dataset of a name, or why there is none here.
func (c *Catalog) Get(name string) (*Dataset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.mu.byName[name]; d != nil {
		return d, nil
	}
	if err := c.mu.failed[name].err; err != nil {
		return nil, fmt.Errorf("%w; index it again with: rankfs dataset refresh %s", err, name)
	}
	return nil, errNoDataset(name)
}

func errNoDataset(name string) error {
	return fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
}

// List is all datasets, by name.
func (c *Catalog) List() []*Dataset {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Dataset, 0, len(c.mu.byName))
	for _, d := range c.mu.byName {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *Dataset) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Rack is the rack of a host, as the sources of datasets say; empty if none of them does.
// Where they disagree the dataset whose name is first is believed.
func (c *Catalog) Rack(host string) string { return c.racks.find(host, c.List) }

// Authorities are the authorities of the clusters of HDFS that datasets are of, in order.
func (c *Catalog) Authorities() (all []string) {
	for _, d := range c.List() {
		if u, err := uri.Parse(d.Source); err == nil && u.InHDFS() {
			all = append(all, u.Authority)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ByIndex is the version that has such an index, or nil.
func (c *Catalog) ByIndex(hash peers.ID) *batch.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.mu.byName {
		if d.Version.ID == hash {
			return d.Version
		}
	}
	return nil
}

// File implements peers.Store: it opens an index for another node, and says how long it
// is.
func (c *Catalog) File(_ context.Context, hash peers.ID) (*os.File, int64, error) {
	return c.indexes.open(hash)
}

// replace puts a dataset in the place of the one of that name, or with nil takes that
// away.
func (c *Catalog) replace(name string, d *Dataset) {
	old := c.swap(name, d)
	c.racks.changed()
	if old != nil {
		c.loose = true
		opened := old.Version.Opened()
		opened.Remove()
		c.config.Drop(name)
		c.endings.begin(name, opened)
	}
	switch {
	case d == nil:
		c.config.Registered(name, time.Time{})
	case old == nil || !d.Created.Equal(old.Created):
		c.config.Registered(name, d.Created)
	}
}

func (c *Catalog) swap(name string, d *Dataset) (old *Dataset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old = c.mu.byName[name]
	delete(c.mu.failed, name)
	if d != nil {
		c.mu.byName[name] = d
	} else {
		delete(c.mu.byName, name)
	}
	return old
}

// Retain tells the copies which versions of sources this node may need, and removes the
// indexes of datasets that are not registered.
func (c *Catalog) Retain() {
	c.retaining.Lock() // the last caller knows best
	defer c.retaining.Unlock()
	var fingerprints []string
	for _, d := range c.List() {
		if d.Version.Source.NeedsCopy() {
			fingerprints = append(fingerprints, fetch.SourceFingerprint(d.Version.Index.Fingerprint()))
		}
	}
	c.config.Env.HDFS.Retain(fingerprints)
	hashes := make(map[string]bool)
	for _, d := range c.config.State.Datasets() {
		hashes[d.Index] = true
	}
	if err := c.indexes.keep(hashes); err != nil {
		c.config.Log.Warn("old indexes not removed", "cause", err)
	}
}

// Close closes what is open, of datasets that were removed too: no view looks anything
// up any more, and Update is not called.
func (c *Catalog) Close() error {
	errs := c.endings.close()
	for _, d := range c.List() {
		errs = append(errs, d.Version.Opened().Close())
	}
	return errors.Join(errs...)
}

// base is a dataset for the source of another one, which is made of it.
func (c *Catalog) base(name string) (fetch.Base, error) {
	d, err := c.Get(name)
	if err != nil {
		return fetch.Base{}, err
	}
	v := d.Version
	return fetch.Base{
		Version: hex.EncodeToString(v.ID[:]), Source: d.Source, Index: v.Index, Keep: v,
		Check: func(ctx context.Context) error { return Reindex(v.Source.Check(ctx), name, &v.Source) },
	}, nil
}
