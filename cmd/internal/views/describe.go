package views

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"rankfs/fs/xattr"
)

// Describe is the text of dataset.json.
func (v *View) Describe() []byte {
	a := v.now()
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
		Name: d.Name, View: a.View().String(), Source: d.Source, Version: d.Version,
		State: d.State, Reason: d.Reason, Records: d.Records, Bytes: d.Bytes,
		Epoch: a.View().Epoch, Ranks: a.Cut().Ranks, Steps: a.Cut().Steps(), Global: a.stepRecords(),
		Order: a.View().Order.String(), Seed: a.View().Seed, Tail: a.View().Tail.String(),
		Batch: a.View().Batch().String(), Size: a.batchRecords(), Chunks: d.Chunks, Created: d.Created, Notes: d.Notes,
	}, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(text, '\n')
}

// batchRecords is the number of records of the largest batch; zero where that is
// chunks.
func (a *assignment) batchRecords() uint64 {
	if a.View().ByChunk() {
		return 0
	}
	return a.Cut().Largest()
}

// stepRecords is the number of records of a whole step of all ranks; zero where that
// is chunks.
func (a *assignment) stepRecords() uint64 {
	if a.View().ByChunk() {
		return 0
	}
	return a.Cut().Global
}

// Attributes implements fs.Attributed.
func (v *View) Attributes(ctx context.Context, rank, step uint64) (xattr.List, error) {
	a := v.now()
	holders, err := a.HoldersFor(ctx, a.host, rank, step)
	if err != nil {
		return nil, err
	}
	id := a.ID()
	tier, ok := v.cache.Contains(a.Key(rank, step))
	if !ok {
		tier = "source"
	}
	return xattr.List{
		{Name: "records", Value: strconv.FormatUint(a.Records(rank, step), 10)},
		{Name: "repeats", Value: strconv.FormatUint(a.Repeats(rank, step), 10)},
		{Name: "epoch", Value: strconv.FormatUint(a.View().Epoch, 10)},
		{Name: "view", Value: a.View().String()},
		{Name: "plan", Value: hex.EncodeToString(id[:])},
		{Name: "tier", Value: tier},
		{Name: "hosts", Value: strings.Join(holders.names(), ",")},
		{Name: "local", Value: strconv.FormatInt(holders.On(a.host), 10)},
	}, nil
}
