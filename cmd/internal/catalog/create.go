package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/state"
)

// Create indexes a source and registers it as a dataset. It returns once this node
// serves that, and the others that are up do, or are not waited for any longer.
func (c *Catalog) Create(ctx context.Context, q control.CreateRequest, report Reporter) (*Dataset, error) {
	options, err := viewOptions(q)
	if err != nil {
		return nil, err
	}
	release, err := c.reserve(q.Name, false)
	if err != nil {
		return nil, err
	}
	defer release()
	r := Registration{Name: q.Name, Source: q.Source, View: options, ByChunk: wantsChunks(q), Created: time.Now().UTC()}
	d, err := c.register(ctx, r, 0, nil, report)
	if err != nil {
		return nil, fmt.Errorf("create dataset %s: %w", q.Name, withNextStep(q.Source, err, ""))
	}
	return d, nil
}

// Refresh indexes the source of a dataset again, as it is now.
func (c *Catalog) Refresh(ctx context.Context, q control.RefreshRequest, report Reporter) (*Dataset, error) {
	release, err := c.reserve(q.Name, true)
	if err != nil {
		return nil, err
	}
	defer release()
	r, generation, err := c.registered(q.Name)
	if err != nil {
		return nil, err
	}
	r.ByChunk = r.ByChunk && !q.Records
	var earlier *batch.Version
	if d, err := c.Get(q.Name); err == nil && d.Source == r.Source {
		earlier = d.Version
	}
	d, err := c.register(ctx, r, generation, earlier, report)
	if err != nil {
		return nil, fmt.Errorf("refresh dataset %s: %w", q.Name, withNextStep(r.Source, err, c.whereItWas(q.Name, r)))
	}
	return d, nil
}

// Remove takes a dataset out of the cluster. Its source is not touched; batches of it
// that ranks have open stay readable.
func (c *Catalog) Remove(ctx context.Context, name string) error {
	release, err := c.reserve(name, true)
	if err != nil {
		return err
	}
	defer release()
	for _, d := range c.config.State.Datasets() {
		if d.Name != name {
			continue
		}
		if _, err := c.config.Cluster.Do(ctx, &state.RemoveDataset{Name: name, Generation: d.Generation}); err != nil {
			return fmt.Errorf("remove dataset %s: %w", name, err)
		}
		c.mu.Lock()
		delete(c.mu.failed, name)
		c.mu.Unlock()
		if _, err := c.await(ctx, name, 0); err != nil {
			return err
		}
		c.endings.await(ctx, name)
	}
	c.Retain()
	return nil
}

// reserve keeps a name for one request while an index is made, which may take long.
func (c *Catalog) reserve(name string, exists bool) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.mu.byName[name] != nil || c.mu.failed[name].err != nil
	switch {
	case c.mu.indexing[name]:
		return nil, fmt.Errorf("dataset %q %w: it is being indexed", name, meta.ErrBusy)
	case known && !exists:
		return nil, fmt.Errorf("dataset %q %w; index it again with: rankfs dataset refresh %s, or remove it with: rankfs dataset rm %[3]s", name, meta.ErrExist, name)
	case !known && exists:
		return nil, errNoDataset(name)
	}
	c.mu.indexing[name] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.indexing, name)
	}, nil
}

// registered is the registration of a dataset in the cluster, whether this node serves
// it or not.
func (c *Catalog) registered(name string) (r Registration, generation uint64, err error) {
	for _, d := range c.config.State.Datasets() {
		if d.Name == name {
			return r, d.Generation, json.Unmarshal(d.Registration, &r)
		}
	}
	return r, 0, errNoDataset(name)
}

// register makes the index of r and has the cluster agree to it, in place of the
// dataset of that generation, if it is not zero, of which this node may have a version.
// The name must be reserved.
func (c *Catalog) register(ctx context.Context, r Registration, instead uint64, earlier *batch.Version, report Reporter) (*Dataset, error) {
	start := time.Now()
	r.Origin = c.config.Self
	bases, err := c.inherit(&r)
	if err != nil {
		return nil, err
	}
	src, err := fetch.Open(r.Source, c.config.Env)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	hash, size, err := c.buildIndex(ctx, src, r.ByChunk, earlier, report)
	if err != nil {
		return nil, err
	}
	defer c.indexes.release(hash)
	r.Indexed = time.Now().UTC()
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	put := &state.PutDataset{
		Name: r.Name, Registration: text, Index: hash, IndexBytes: size, Bases: bases, Generation: instead,
	}
	if s, ok := src.(madeOfStage); ok {
		put.Stage, put.StageGeneration = s.Stage()
	}
	result, err := c.config.Cluster.Do(ctx, put)
	if err != nil {
		return nil, err
	}
	d, err := c.await(ctx, r.Name, result.Generation())
	if err != nil {
		return nil, err
	}
	c.endings.await(ctx, r.Name)
	c.Retain() // before src is closed: what it has copied is wanted
	c.awaitOthers(ctx, version{r.Name, d.Generation})
	c.config.Log.Info("dataset indexed", "dataset", r.Name, "source", r.Source,
		"records", d.Version.Index.Records(), "bytes", d.Version.Index.Bytes(), "took", time.Since(start))
	return d, nil
}

// wantsChunks reports whether it need not be known where the records are.
func wantsChunks(r control.CreateRequest) bool {
	return r.Batch == "chunk" && cmp.Or(r.Order, "none") == "none"
}

// viewOptions checks a request and returns the options of its default view.
func viewOptions(r control.CreateRequest) (string, error) {
	if err := meta.CheckName(r.Name); err != nil {
		return "", err
	}
	v := meta.View{Dataset: r.Name, Ranks: 1}
	v, err := v.With(fmt.Sprintf("ranks=%d,batch=%s,order=%s,seed=%d,tail=%s", max(1, r.Ranks),
		cmp.Or(r.Batch, "256"), cmp.Or(r.Order, "none"), r.Seed, cmp.Or(r.Tail, "keep")))
	if err != nil {
		return "", err
	}
	_, options, _ := strings.Cut(v.String(), "@")
	return options, nil
}

// whereItWas says what to do where the source of a dataset is not on this node.
func (c *Catalog) whereItWas(name string, r Registration) string {
	host, _ := c.config.Owners.Host(r.Origin)
	u, err := uri.Parse(r.Source)
	if r.Origin == c.config.Self || host == "" || err == nil && u.Remote() {
		return bringBack("", name)
	}
	return fmt.Sprintf("it is on host %s; refresh the dataset there with: rankfs dataset refresh %s", host, name)
}

// withNextStep adds what to do to the error of a source that is not there, or not for this
// daemon to read. Where it was, if it was indexed before, says that for one that is not there.
func withNextStep(source string, err error, was string) error {
	missing := errors.Is(err, meta.ErrNotExist) || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	refused := errors.Is(err, iofs.ErrPermission)
	if !missing && !refused && !meta.Impossible(err) {
		return err
	}
	u, bad := uri.Parse(source)
	if bad != nil || u.Derived() {
		return err
	}
	next := "look for it on this node with: ls -l " + meta.ShellWord(u.Path)
	switch {
	case u.InPool():
		next = "see which there are with: rankfs shuffle ls, and: rankfs shuffle show JOB"
	case missing && was != "":
		next = was
	case u.InHDFS() && !missing:
		return err
	case u.InHDFS():
		next = "look for it with: hdfs dfs -ls " + meta.ShellWord("hdfs://"+u.Authority+u.Path)
	case refused:
		next = "see who may read it on this node with: namei -l " + meta.ShellWord(u.Path)
	}
	told := meta.Tell(fmt.Errorf("%w; %s", err, next))
	if missing {
		told.Kind = "not_exist"
	}
	return told
}
