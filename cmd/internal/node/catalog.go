package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A catalog is the set of registered datasets as this node serves them. What is
// registered the cluster's state machine says; the catalog follows it, and has
// an index here for each.
type catalog struct {
	cluster cluster
	indexes *indexes
	env     *fetch.Env
	owners  *plan.Owners
	log     *slog.Logger
	dropped func(name string) // what the name stood for it stands for no more

	loose     bool       // update has taken out what may be wanted by nobody
	retaining sync.Mutex // before mu

	mu struct {
		sync.Mutex
		byName  map[string]*dataset
		making  map[string]bool // names for which an index is being made
		failed  map[string]failure
		removed []*batch.OpenSource // that are open still, as far as is known
		updated chan struct{}       // closed at the next update
	}
}

// A failure is why a dataset is not served here.
type failure struct {
	generation uint64
	err        error
}

// A cluster is what the catalog follows, and writes to.
type cluster interface {
	Datasets() []state.Dataset
	Changed() <-chan struct{}
	Do(ctx context.Context, c state.Command) (state.Result, error)
	// Bring has the index of a dataset copied to path from a node that has it.
	Bring(ctx context.Context, d state.Dataset, path string) error
}

// A record is what the cluster keeps of a dataset beside the index.
type record struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"`
	View    string    `json:"view"`               // the options of the default view, all of them
	ByChunk bool      `json:"by_chunk,omitempty"` // records need not be counted
	Origin  string    `json:"origin"`             // the node that indexed it: it has what others may not
	Created time.Time `json:"created"`
	Indexed time.Time `json:"indexed"`
}

const newPrefix = ".new-"

func newCatalog(k cluster, x *indexes, env *fetch.Env, o *plan.Owners, log *slog.Logger) *catalog {
	c := &catalog{cluster: k, indexes: x, env: env, owners: o, log: log, dropped: func(string) {}}
	c.mu.byName, c.mu.making, c.mu.failed = make(map[string]*dataset), make(map[string]bool), make(map[string]failure)
	c.mu.updated = make(chan struct{})
	return c
}

// again is how long to wait before a dataset that could not be loaded is tried
// once more.
const again = 5 * time.Second

// follow keeps the catalog like the cluster until ctx is done.
func (c *catalog) follow(ctx context.Context) {
	for {
		changed := c.cluster.Changed()
		var retry <-chan time.Time
		if !c.update(ctx) {
			retry = time.After(again)
		}
		if c.loose {
			c.loose = false
			c.retain()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
	}
}

// update makes the catalog like the cluster, and reports whether it is.
func (c *catalog) update(ctx context.Context) (whole bool) {
	whole = true
	registered := make(map[string]uint64)
	for _, d := range c.cluster.Datasets() {
		registered[d.Name] = d.Generation
		if old := c.find(d.Name); old != nil && old.generation == d.Generation {
			continue
		}
		loaded, err := c.load(ctx, d)
		if err != nil {
			whole = false
			c.fail(ctx, d.Name, failure{d.Generation, err})
			continue
		}
		c.enter(d.Name, loaded)
	}
	for _, d := range c.list() {
		if _, ok := registered[d.record.Name]; !ok {
			c.enter(d.record.Name, nil)
		}
	}
	c.told()
	return whole
}

func (c *catalog) load(ctx context.Context, d state.Dataset) (*dataset, error) {
	var r record
	if err := json.Unmarshal(d.Record, &r); err != nil {
		return nil, fmt.Errorf("record of dataset %s %w: %w", d.Name, meta.ErrCorrupt, err)
	}
	if !c.indexes.has(d.Index) {
		if err := c.cluster.Bring(ctx, d, c.indexes.path(d.Index)); err != nil {
			return nil, fmt.Errorf("index of dataset %s: %w", d.Name, err)
		}
	}
	loaded, err := newDataset(c.indexes.path(d.Index), r, d, c.env, c.owners)
	if errors.Is(err, meta.ErrCorrupt) {
		c.indexes.discardOne(d.Index) // another copy is brought at the next attempt
	}
	return loaded, err
}

// enter puts a dataset in the place of the one of that name, or takes that away.
func (c *catalog) enter(name string, d *dataset) {
	c.mu.Lock()
	old := c.mu.byName[name]
	delete(c.mu.failed, name)
	if d != nil {
		c.mu.byName[name] = d
	} else {
		delete(c.mu.byName, name)
	}
	if old != nil {
		c.mu.removed = append(slices.DeleteFunc(c.mu.removed, (*batch.OpenSource).IsClosed), old.version.Source.Opened)
	}
	c.mu.Unlock()
	if old == nil {
		return
	}
	c.loose = true
	if err := old.version.Source.Opened.Remove(); err != nil {
		c.log.Warn("source not closed", "dataset", name, "cause", err)
	}
	c.dropped(name)
}

// fail notes why a dataset is not served. One bad one must not keep the others
// from being served.
func (c *catalog) fail(ctx context.Context, name string, f failure) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	before := c.mu.failed[name]
	c.mu.failed[name] = f
	c.mu.Unlock()
	if before.err == nil || before.err.Error() != f.err.Error() {
		c.log.Error("dataset not loaded", "dataset", name, "cause", f.err)
	}
}

// told wakes up who waits for an update.
func (c *catalog) told() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.mu.updated)
	c.mu.updated = make(chan struct{})
}

// await waits until a dataset is served as of a generation, or a later one, or
// with generation 0 not at all.
func (c *catalog) await(ctx context.Context, name string, generation uint64) (*dataset, error) {
	for {
		c.mu.Lock()
		d, failed, updated := c.mu.byName[name], c.mu.failed[name], c.mu.updated
		c.mu.Unlock()
		switch {
		case generation == 0 && d == nil:
			return nil, nil
		case generation != 0 && d != nil && d.generation >= generation:
			return d, nil
		case generation != 0 && failed.generation >= generation:
			return nil, failed.err
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *catalog) find(name string) *dataset {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.byName[name]
}

func (c *catalog) get(name string) (*dataset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.mu.byName[name]; d != nil {
		return d, nil
	}
	if err := c.mu.failed[name].err; err != nil {
		return nil, fmt.Errorf("%w; index it again with: rankfs dataset refresh %s", err, name)
	}
	return nil, fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
}

// registered is what the cluster says of a name, whether it is served here or
// not.
func (c *catalog) registered(name string) (r record, generation uint64, err error) {
	for _, d := range c.cluster.Datasets() {
		if d.Name == name {
			return r, d.Generation, json.Unmarshal(d.Record, &r)
		}
	}
	return r, 0, fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
}

// byIndex is a dataset that has that index, or nil.
func (c *catalog) byIndex(hash string) *dataset {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.mu.byName {
		if d.hash == hash {
			return d
		}
	}
	return nil
}

func (c *catalog) list() []*dataset {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*dataset, 0, len(c.mu.byName))
	for _, d := range c.mu.byName {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *dataset) int { return cmp.Compare(a.record.Name, b.record.Name) })
	return all
}

// claim reserves a name while its index is made, which may take long.
func (c *catalog) claim(name string, exists bool) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.mu.byName[name] != nil || c.mu.failed[name].err != nil
	switch {
	case c.mu.making[name]:
		return nil, fmt.Errorf("dataset %q %w: it is being indexed", name, meta.ErrBusy)
	case known && !exists:
		return nil, fmt.Errorf("dataset %q %w; index it again with: rankfs dataset refresh %s, or remove it with: rankfs dataset rm %[3]s", name, meta.ErrExist, name)
	case !known && exists:
		return nil, fmt.Errorf("dataset %q %w; see: rankfs dataset ls", name, meta.ErrNotExist)
	}
	c.mu.making[name] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.making, name)
	}, nil
}

// install makes and registers the dataset of r, in place of the one of that
// generation, if it is not zero. The name must be claimed.
func (c *catalog) install(ctx context.Context, r record, instead uint64, report reporter) (*dataset, error) {
	d, err := c.register(ctx, r, instead, report)
	if err != nil {
		verb := "create"
		if instead != 0 {
			verb = "refresh"
		}
		return nil, fmt.Errorf("%s dataset %s: %w", verb, r.Name, sought(r.Source, err))
	}
	return d, nil
}

func (c *catalog) register(ctx context.Context, r record, instead uint64, report reporter) (*dataset, error) {
	src, err := fetch.Open(r.Source, c.env)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	path, err := c.indexes.create()
	if err != nil {
		return nil, err
	}
	defer c.indexes.abandon(path)
	if err := makeIndex(ctx, r, src, path, report); err != nil {
		return nil, err
	}
	hash, size, err := c.indexes.add(path)
	if err != nil {
		return nil, err
	}
	defer c.indexes.settle(hash)
	r.Indexed = time.Now().UTC()
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	result, err := c.cluster.Do(ctx, &state.PutDataset{
		Name: r.Name, Record: text, Index: hash, IndexBytes: size, Generation: instead,
	})
	if err != nil {
		return nil, err
	}
	d, err := c.await(ctx, r.Name, result.Generation)
	if err == nil {
		c.retain() // before src is closed: what it has copied is wanted
	}
	return d, err
}

// remove takes a dataset out of the cluster. Its name must be claimed.
func (c *catalog) remove(ctx context.Context, name string) error {
	for _, d := range c.cluster.Datasets() {
		if d.Name != name {
			continue
		}
		if _, err := c.cluster.Do(ctx, &state.RemoveDataset{Name: name, Generation: d.Generation}); err != nil {
			return fmt.Errorf("remove dataset %s: %w", name, err)
		}
		c.mu.Lock()
		delete(c.mu.failed, name)
		c.mu.Unlock()
		if _, err := c.await(ctx, name, 0); err != nil {
			return err
		}
	}
	c.retain()
	return nil
}

// retain says which versions of sources there are datasets of for which this node
// may need a copy, and keeps the indexes of no others.
func (c *catalog) retain() {
	c.retaining.Lock() // who is last knows best
	defer c.retaining.Unlock()
	var fingerprints []string
	for _, d := range c.list() {
		if d.version.Source.Kept() {
			fingerprints = append(fingerprints, d.version.Index.Fingerprint())
		}
	}
	c.env.HDFS.Retain(fingerprints)
	hashes := make(map[string]bool)
	for _, d := range c.cluster.Datasets() {
		hashes[d.Index] = true
	}
	if err := c.indexes.keep(hashes); err != nil {
		c.log.Warn("old indexes not removed", "cause", err)
	}
}

// close closes what is open, of datasets that were removed too: nobody looks
// anything up any more.
func (c *catalog) close() error {
	c.mu.Lock()
	all := slices.Clone(c.mu.removed)
	c.mu.Unlock()
	for _, d := range c.list() {
		all = append(all, d.version.Source.Opened)
	}
	var errs []error
	for _, h := range all {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
