package control

import (
	"context"
	"fmt"
	"time"
)

// A CreateRequest registers a dataset. Empty strings mean the default.
type CreateRequest struct {
	Name   string `json:"name"`
	Source string `json:"source"`          // lmdb:PATH?db=NAME, file:PATH?as=lines ...; PATH is absolute
	Ranks  uint64 `json:"ranks,omitempty"` // default 1
	Batch  string `json:"batch,omitempty"` // 256, 64MiB or chunk; default 256
	Order  string `json:"order,omitempty"` // none, window:N or full; default none
	Seed   uint64 `json:"seed,omitempty"`  // default 0
	Tail   string `json:"tail,omitempty"`  // keep, drop or pad; default keep
}

// A Dataset describes a registered dataset.
type Dataset struct {
	Name       string            `json:"name"`
	Source     string            `json:"source"`
	Root       string            `json:"root,omitempty"`   // the source that has the bytes, if it is made of another dataset
	State      string            `json:"state"`            // "ready" or "stale"
	Reason     string            `json:"reason,omitempty"` // why it is not ready, and what to do
	Version    string            `json:"version"`          // of the source, as indexed
	Records    uint64            `json:"records"`
	Bytes      int64             `json:"bytes"`
	Chunks     int               `json:"chunks"`
	Ranks      uint64            `json:"ranks"`
	Batch      string            `json:"batch"`                   // as it was asked for: records, bytes or "chunk"
	BatchSize  uint64            `json:"batch_records,omitempty"` // of one rank in one step; none of chunks
	Steps      uint64            `json:"steps"`
	Order      string            `json:"order"`
	Seed       uint64            `json:"seed"`
	Tail       string            `json:"tail"`
	Created    time.Time         `json:"created"`
	IndexBytes int64             `json:"index_bytes"`
	Notes      map[string]string `json:"notes,omitempty"` // what the source had to say, as a remainder left out
}

// Unreadable warns that no batch of a dataset can be opened.
func Unreadable(name, reason string) string {
	return fmt.Sprintf("dataset %s cannot be read: %s", name, reason)
}

// A ViewName names a view, in every answer.
type ViewName struct {
	View string `json:"view"`      // the shortest name that it has
	Full string `json:"full_view"` // with all options
}

// NameOf names a view by the shortest name that it has, and with all options.
func NameOf(short, full string) ViewName { return ViewName{View: short, Full: full} }

// An ExplainRequest asks what the name of a view stands for, and, with a number of nodes,
// what each needs of memory if its ranks are spread over them.
type ExplainRequest struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes,omitempty"`
}

// An Explanation says what the name of a view stands for.
type Explanation struct {
	ViewName
	Ranks   uint64 `json:"ranks"`
	Steps   uint64 `json:"steps"`
	Records uint64 `json:"records"` // of the dataset
	Bytes   int64  `json:"bytes"`
	Warning string `json:"warning,omitempty"` // why ranks may not be able to read it

	// If it was asked for: what the ranks of a node need together for a batch each, in
	// whole pages, and the largest batch.
	NodeBytes    int64 `json:"node_bytes,omitempty"`
	LargestBytes int64 `json:"largest_batch_bytes,omitempty"`
}

// A RefreshRequest asks for a dataset to be indexed again. Records counts the
// records of one whose chunks alone were looked for.
type RefreshRequest struct {
	Name    string `json:"name"`
	Records bool   `json:"records,omitempty"`
}

// A Verification is the outcome of reading every record of a dataset back.
type Verification struct {
	Records  uint64 `json:"records"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"` // of all records in the source's order
}

// Datasets asks for all registered datasets.
func (c *Client) Datasets(ctx context.Context) ([]Dataset, error) {
	return ask[[]Dataset](ctx, c, "datasets", struct{}{}, nil)
}

// Dataset asks for one registered dataset.
func (c *Client) Dataset(ctx context.Context, name string) (Dataset, error) {
	return ask[Dataset](ctx, c, "dataset", named{name}, nil)
}

// Explain asks what the name of a view stands for, or why for nothing.
func (c *Client) Explain(ctx context.Context, r ExplainRequest) (Explanation, error) {
	return ask[Explanation](ctx, c, "explain", r, nil)
}

// Remove unregisters a dataset.
func (c *Client) Remove(ctx context.Context, name string) error {
	_, err := change[struct{}](ctx, c, "remove", named{name})
	return err
}

// Create registers a dataset. It calls progress from the calling goroutine.
func (c *Client) Create(ctx context.Context, r CreateRequest, progress func(Progress)) (Dataset, error) {
	return ask[Dataset](ctx, c, "create", r, progress)
}

// Refresh indexes a dataset's source again, as Create.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest, progress func(Progress)) (Dataset, error) {
	return ask[Dataset](ctx, c, "refresh", r, progress)
}

// Verify reads every record of a dataset back, as Create.
func (c *Client) Verify(ctx context.Context, name string, progress func(Progress)) (Verification, error) {
	return ask[Verification](ctx, c, "verify", named{name}, progress)
}
