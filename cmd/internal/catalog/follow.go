package catalog

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rankfs/fetch/batch"
	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/state"
)

// retryLoad is how long to wait before a dataset that could not be loaded is tried once
// more.
const retryLoad = 5 * time.Second

// Follow keeps the catalog like the cluster's state until ctx is done.
func (c *Catalog) Follow(ctx context.Context) {
	for {
		changed := c.config.State.ClusterChanged()
		var retry <-chan time.Time
		if !c.Update(ctx) {
			retry = time.After(retryLoad)
		}
		if c.loose {
			c.loose = false
			c.Retain()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-c.endings.freed:
			c.loose = true
		case <-retry:
		}
	}
}

// Update makes the catalog like the cluster's state, and reports whether it is.
func (c *Catalog) Update(ctx context.Context) (whole bool) {
	whole = true
	registered := make(map[string]bool)
	for _, d := range c.config.State.Datasets() {
		registered[d.Name] = true
		if c.generation(d.Name) == d.Generation {
			continue
		}
		loaded, err := c.load(ctx, d)
		if err != nil {
			whole = false
			c.fail(ctx, d.Name, failure{d.Generation, err})
			continue
		}
		c.replace(d.Name, loaded)
	}
	for _, d := range c.List() {
		if !registered[d.Name] {
			c.replace(d.Name, nil)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.mu.updated)
	c.mu.updated = make(chan struct{})
	return whole
}

// generation is the generation of the dataset served by a name; zero if none is.
func (c *Catalog) generation(name string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.mu.byName[name]; d != nil {
		return d.Generation
	}
	return 0
}

// load opens the version of a dataset, whose index another node may have to send.
func (c *Catalog) load(ctx context.Context, d state.Dataset) (*Dataset, error) {
	var r Registration
	if err := json.Unmarshal(d.Registration, &r); err != nil {
		return nil, fmt.Errorf("registration of dataset %s %w: %w", d.Name, meta.ErrCorrupt, err)
	}
	view, err := meta.View{Dataset: r.Name, Ranks: 1}.With(r.View)
	if err != nil {
		return nil, fmt.Errorf("registration of dataset %s %w: %w", r.Name, meta.ErrCorrupt, err)
	}
	path := c.indexes.path(d.Index)
	if !c.indexes.has(d.Index) {
		if err := c.bring(ctx, d.Index, r.Origin, path); err != nil {
			return nil, fmt.Errorf("index of dataset %s: %w", d.Name, err)
		}
	}
	v, err := batch.Open(path, batch.Config{Source: r.Source, Root: r.Root, Origin: r.Origin, Hash: d.Index, Env: c.config.Env, Owners: c.config.Owners, Ask: c.ask})
	if errors.Is(err, meta.ErrCorrupt) {
		c.indexes.discardOne(d.Index) // another copy is brought at the next attempt
	}
	if err != nil {
		return nil, err
	}
	return &Dataset{r, view, d.Generation, v}, nil
}

// bring copies an index from the node that made it, or else from one of the others.
func (c *Catalog) bring(ctx context.Context, index, origin, path string) error {
	var hash peers.ID
	if _, err := hex.Decode(hash[:], []byte(index)); err != nil {
		return fmt.Errorf("hash of index %q %w", index, meta.ErrCorrupt)
	}
	err := meta.Worded(meta.ErrNotExist, "it does not exist on any node that is up")
	for _, asked := range []bool{true, false} {
		for _, n := range c.config.State.Nodes() {
			if n.ID == c.config.Self || !n.Up || (n.ID == origin) != asked {
				continue
			}
			if err = c.config.Fetch(ctx, n.ID, hash, path); err == nil {
				return nil
			}
		}
	}
	return err
}

// fail notes why a dataset is not served. The others are served all the same.
func (c *Catalog) fail(ctx context.Context, name string, f failure) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	before := c.mu.failed[name]
	c.mu.failed[name] = f
	c.mu.Unlock()
	if before.err == nil || before.err.Error() != f.err.Error() {
		c.config.Log.Error("dataset not loaded", "dataset", name, "cause", f.err)
	}
}

// await waits until a dataset is served as of a generation, or a later one, or with
// generation 0 not at all.
func (c *Catalog) await(ctx context.Context, name string, generation uint64) (*Dataset, error) {
	for {
		c.mu.Lock()
		d, failed, updated := c.mu.byName[name], c.mu.failed[name], c.mu.updated
		c.mu.Unlock()
		switch {
		case generation == 0 && d == nil:
			return nil, nil
		case generation != 0 && d != nil && d.Generation >= generation:
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
