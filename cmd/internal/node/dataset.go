package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/cache/peers"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A dataset is one version of a registered dataset. What is known of it comes
// from its index, which is there even if the source is not; the source is
// attached when the first byte is asked for.
//
// Views of a dataset that was removed or refreshed may live on in the kernel
// for a while, and look things up in its index. So index and source are closed
// when nothing refers to them any more or the mount is gone, and not before.
type dataset struct {
	record     record
	view       meta.View
	generation uint64 // of the cluster's state
	hash       string // of the index
	content    *content
}

// content is what a dataset's views share.
type content struct {
	source  string
	env     *fetch.Env
	index   *index.Index
	held    *held
	remote  bool // the bytes are on hosts that the index names
	copied  bool // one node of the cluster has them on its disk as a whole
	id      peers.ID
	version *plan.Version // what plans know of it
	origin  string        // the node that indexed it
	owners  *plan.Owners
	flows   *stall.Flows // what came of it to this node

	readers atomic.Pointer[readers] // as of the plan settled last: what is ahead for those is for others too

	width   sync.Once
	longest int // name of a host
	most    int // hosts of a chunk
}

// held is what has to be closed. It is apart from content so that it can
// outlive it.
type held struct {
	index  *index.Index
	closed atomic.Bool // set under mu

	mu struct {
		sync.Mutex
		data    *fetch.Dataset // owns index once it is there
		removed bool           // data is detached, if it is there, and will not be attached
	}
}

func newDataset(path string, r record, d state.Dataset, env *fetch.Env, o *plan.Owners) (*dataset, error) {
	view, err := meta.View{Dataset: r.Name, Ranks: 1}.With(r.View)
	if err != nil {
		return nil, fmt.Errorf("record of dataset %s %w: %w", r.Name, meta.ErrCorrupt, err)
	}
	x, err := index.Open(path)
	if err != nil {
		return nil, err
	}
	c := &content{
		source: r.Source, env: env, index: x, held: &held{index: x}, remote: fetch.IsRemote(r.Source), copied: fetch.IsCopied(r.Source),
		origin: r.Origin, owners: o, flows: stall.NewFlows(time.Now),
	}
	if _, err := hex.Decode(c.id[:], []byte(d.Index)); err != nil {
		return nil, errors.Join(fmt.Errorf("hash of index %q %w", d.Index, meta.ErrCorrupt), x.Close())
	}
	c.version = plan.NewVersion(x, c.id)
	runtime.AddCleanup(c, func(h *held) { h.close() }, c.held)
	return &dataset{r, view, d.Generation, d.Index, c}, nil
}

// A chunked source can say where its chunks are long before it has counted the
// records in them.
type chunked interface {
	ByChunk(ctx context.Context) (bool, error)
}

// countsRecords reports whether the records of the index are those of the
// source, not chunks of them.
func (c *content) countsRecords() bool { return c.index.Notes()["records"] == "" }

// A copying source brings its bytes here before it can scan them.
type copying interface {
	Copy(ctx context.Context, done func(bytes, total int64)) error
}

// sought adds the next step to the error of a source that is not there.
func sought(source string, err error) error {
	if !errors.Is(err, meta.ErrNotExist) && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	path, _, _ := strings.Cut(source, "?")
	next := "look for it with: hdfs dfs -ls " + path
	if scheme, local, _ := strings.Cut(path, ":"); scheme != "hdfs" {
		next = "look for it on this node with: ls -l " + local
	}
	return &meta.Told{Kind: "not_exist", Message: fmt.Sprintf("%v; %s", err, next)}
}

func makeIndex(ctx context.Context, r record, src fetch.Source, path string, report reporter) error {
	if c, ok := src.(copying); ok {
		err := c.Copy(ctx, func(bytes, total int64) {
			report(control.Progress{Stage: "copying", Bytes: bytes, Total: total})
		})
		if err != nil {
			return err
		}
	}
	if c, ok := src.(chunked); ok && r.ByChunk {
		if _, err := c.ByChunk(ctx); err != nil {
			return err
		}
	}
	return fetch.Build(ctx, src, path, func(bytes, total int64, records uint64) {
		report(control.Progress{Stage: "indexing", Bytes: bytes, Total: total, Records: records})
	})
}

var errRemoved = fmt.Errorf("%w: the dataset was removed or refreshed; open it by its path again", meta.ErrStale)

// reindex says what to do where the source of a dataset has changed. One that was
// removed has another name, or is indexed already.
func reindex(err error, name string) error {
	if errors.Is(err, errRemoved) || !errors.Is(err, meta.ErrStale) {
		return err
	}
	return fmt.Errorf("%w; index it again with: rankfs dataset refresh %s", err, name)
}

// remove makes every further open of a view fail: the name stands for
// something else now, or for nothing. What the source holds, perhaps much of a
// disk, is given back; the index stays for who looks things up in it.
func (h *held) remove() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.removed = true
	if h.mu.data == nil {
		return nil
	}
	return h.mu.data.Detach(errRemoved)
}

func (h *held) attach(ctx context.Context, source string, env *fetch.Env) (*fetch.Dataset, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.removed {
		return nil, errRemoved
	}
	if h.mu.data != nil || h.closed.Load() {
		return h.mu.data, nil
	}
	src, err := fetch.Open(source, env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", meta.ErrStale, err)
	}
	d, err := fetch.Attach(ctx, src, h.index)
	if err != nil {
		src.Close()
		return nil, err
	}
	h.mu.data = d
	return d, nil
}

// attached is the way to the bytes, or nil if none were asked for yet.
func (h *held) attached() *fetch.Dataset {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() {
		return nil
	}
	return h.mu.data
}

// isClosed does not wait for a source that is being attached.
func (h *held) isClosed() bool { return h.closed.Load() }

func (h *held) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Swap(true) {
		return nil
	}
	if h.mu.data != nil {
		return h.mu.data.Close()
	}
	return h.index.Close()
}

// describe says what is known of the dataset, and whether it can be read.
func (d *dataset) describe(ctx context.Context) control.Dataset {
	x := d.content.index
	cut := d.view.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	batch := meta.BatchSize{Unit: d.view.Step.Unit, N: d.view.Step.N / max(1, d.view.Ranks)}
	records := uint64(0)
	if batch.Unit != meta.UnitChunk {
		records = (cut.Global + cut.Ranks - 1) / cut.Ranks
	}
	c := control.Dataset{
		Name: d.record.Name, Source: d.record.Source, State: "ready", Version: x.Fingerprint(),
		Records: x.Records(), Bytes: x.Bytes(), Chunks: x.Chunks(),
		Ranks: d.view.Ranks, Batch: batch.String(), BatchSize: records, Steps: cut.Steps(),
		Order: d.view.Order.String(), Seed: d.view.Seed, Tail: d.view.Tail.String(),
		Created: d.record.Created, IndexBytes: x.FileBytes(), Notes: x.Notes(),
	}
	if _, err := d.content.data(ctx); err != nil && d.content.elsewhere() == "" {
		c.State, c.Reason = "stale", reindex(err, c.Name).Error()
		if !errors.Is(err, meta.ErrStale) {
			c.State = "unreadable"
		}
	}
	return c
}
