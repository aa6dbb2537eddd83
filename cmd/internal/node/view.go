package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A view is one directory below /datasets as of one plan, with what the tree
// shows of it.
type view struct {
	*batches
	dataset *catalog.Dataset
	cache   *cache.Cache
	host    string
	seats   []plan.Seat // of its ranks; nil: all are here
}

// hostOf is where a rank runs, as far as its plan knows.
func (v *view) hostOf(rank uint64) string {
	for _, s := range v.seats {
		if rank < s.Ranks {
			return s.Host
		}
		rank -= s.Ranks
	}
	return v.host
}

// Names lists the datasets.
func (n *Node) Names() []string {
	var names []string
	for _, d := range n.catalog.List() {
		names = append(names, d.Name)
	}
	return names
}

// View resolves NAME or NAME@options.
func (n *Node) View(name string) (fs.View, error) { return n.open(name) }

func (n *Node) open(name string) (*settling, error) {
	v, d, err := n.resolve(name)
	if err != nil {
		return nil, err
	}
	return n.settling(name, v, d)
}

func (n *Node) resolve(name string) (v meta.View, d *catalog.Dataset, err error) {
	base, options, isView := meta.SplitView(name)
	if d, err = n.catalog.Get(base); err != nil {
		return v, nil, err
	}
	v = d.Default
	if isView {
		if v, err = v.With(options); err != nil {
			return v, nil, err
		}
	}
	if v.Step.Unit != meta.UnitChunk && !d.Version.CountsRecords() {
		return v, nil, fmt.Errorf("view %q %w: the records of %s were not counted, as its batches are chunks; count them with: rankfs dataset refresh %s --records",
			name, meta.ErrInvalid, base, base)
	}
	return v, d, nil
}

// Dataset names the dataset that is viewed.
func (v *view) Dataset() string { return v.dataset.Name }

// Ranks is the number of rank directories.
func (v *view) Ranks() uint64 { return v.Cut().Ranks }

// Open returns the slab of a batch, complete.
func (v *view) Open(ctx context.Context, account *stall.Open, rank, step uint64) (s *cache.Slab, err error) {
	err = v.Version.Source.Retry(ctx, account, func() (err error) {
		s, err = v.cache.Open(ctx, account, v.batches, rank, step)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", v.Dataset(), catalog.Reindex(err, v.Dataset()))
	}
	return s, nil
}

// Describe is the content of dataset.json.
func (v *view) Describe() []byte {
	d := v.dataset.Describe(context.Background())
	text, err := json.MarshalIndent(struct {
		Name    string `json:"name"`
		View    string `json:"view"`
		Source  string `json:"source"`
		Version string `json:"version"`
		State   string `json:"state"`
		Reason  string `json:"reason,omitempty"`
		Records uint64 `json:"records"`
		Bytes   int64  `json:"bytes"`
		Epoch   uint64 `json:"epoch"`
		Ranks   uint64 `json:"ranks"`
		Steps   uint64 `json:"steps"`
		Batch   string `json:"batch"`
		Size    uint64 `json:"batch_records,omitempty"`
		Global  uint64 `json:"step_records,omitempty"`
		Order   string `json:"order"`
		Seed    uint64 `json:"seed"`
		Tail    string `json:"tail"`

		Chunks  int               `json:"chunks"`
		Created time.Time         `json:"created"`
		Notes   map[string]string `json:"notes,omitempty"`
	}{
		Name: d.Name, View: v.View().String(), Source: d.Source, Version: d.Version,
		State: d.State, Reason: d.Reason, Records: d.Records, Bytes: d.Bytes,
		Epoch: v.View().Epoch, Ranks: v.Cut().Ranks, Steps: v.Cut().Steps(), Global: v.stepRecords(),
		Order: v.View().Order.String(), Seed: v.View().Seed, Tail: v.View().Tail.String(),
		Batch: v.batch().String(), Size: v.batchRecords(), Chunks: d.Chunks, Created: d.Created, Notes: d.Notes,
	}, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(text, '\n')
}

// batch is what each rank reads of a step, as it was asked for.
func (v *view) batch() meta.BatchSize {
	return meta.BatchSize{Unit: v.View().Step.Unit, N: v.View().Step.N / max(1, v.Cut().Ranks)}
}

// batchRecords is how many records the largest batch has; zero where that is
// chunks.
func (v *view) batchRecords() uint64 {
	return (v.stepRecords() + v.Cut().Ranks - 1) / v.Cut().Ranks
}

// stepRecords is what all ranks read together in a whole step; zero where that
// is chunks.
func (v *view) stepRecords() uint64 {
	if v.View().Step.Unit == meta.UnitChunk {
		return 0
	}
	return v.Cut().Global
}

// Attributes are what ls -l cannot show of a batch.
func (v *view) Attributes(rank, step uint64) []fs.Attribute {
	id := v.ID()
	tier, ok := v.cache.Contains(v.batches, rank, step)
	if !ok {
		tier = "source"
	}
	return []fs.Attribute{
		{Name: "records", Value: strconv.FormatUint(v.Records(rank, step), 10)},
		{Name: "repeats", Value: strconv.FormatUint(v.Repeats(rank, step), 10)},
		{Name: "epoch", Value: strconv.FormatUint(v.View().Epoch, 10)},
		{Name: "view", Value: v.View().String()},
		{Name: "plan", Value: hex.EncodeToString(id[:])},
		{Name: "tier", Value: tier},
		{Name: "hosts", Value: strings.Join(v.holders(rank, step).names(), ",")},
		{Name: "local", Value: strconv.FormatInt(v.holders(rank, step).held(v.host), 10)},
	}
}
