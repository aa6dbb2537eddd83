package control

import "context"

// A Policy names the policy that is in force, and all that there are.
type Policy struct {
	Name  string   `json:"policy"`
	Names []string `json:"policies"`
}

// A PolicyRequest asks for another policy; without a name, for nothing.
type PolicyRequest struct {
	Name string `json:"name,omitempty"`
}

// Where cached bytes are, the fastest first.
const (
	TierRAM    = "ram"
	TierPacked = "packed" // in memory, compressed
	TierNVMe   = "nvme"
)

// Kinds of what is kept.
const (
	Batches = "batches"
	Chunks  = "chunks" // of the source: all views of it that are made of them share them
)

// A CachePinRequest pins a view: none of its batches goes below the tier any more. An
// empty tier ends the pin.
type CachePinRequest struct {
	View string `json:"view"`
	Tier string `json:"tier,omitempty"`
}

// A CachePin is the result of a CachePinRequest.
type CachePin struct {
	ViewName
	Tier string `json:"tier,omitempty"` // empty: none any more
	Kind string `json:"kind"`           // what is pinned of the view
	Once bool   `json:"once,omitempty"` // other epochs have other batches
	Was  string `json:"was,omitempty"`  // the tier before

	TooLarge string `json:"too_large,omitempty"` // why there is no room at all for its largest batch, and how there would be
}

// A Held is the amount of data in one place.
type Held struct {
	Batches int   `json:"batches"`
	Bytes   int64 `json:"bytes"` // real ones
}

// An Eviction is the amount that the cache dropped of a dataset or a view, and the
// amount that stayed because ranks hold it or it was just being filled.
type Eviction struct {
	ViewName
	AllViews bool   `json:"all_views,omitempty"` // of the dataset whose own view that is
	Kind     string `json:"kind"`
	Evicted  Held   `json:"evicted"`
	Stayed   Held   `json:"stayed"`
}

// A CacheList says how much of each view is cached.
type CacheList struct {
	Policy  string   `json:"policy"`
	Views   []Cached `json:"views"`
	Warming []WarmUp `json:"warming,omitempty"`
}

// A Cached says how much of a view, or of the chunks of a dataset, the cache has. A
// batch or chunk that it has in two forms counts twice.
type Cached struct {
	ViewName        // empty: of views that were not opened since the mount; of chunks, twice the dataset's
	Kind     string `json:"kind"`
	RAM      Held   `json:"ram"`
	Packed   Held   `json:"packed"`
	NVMe     Held   `json:"nvme"`
	Pinned   string `json:"pinned,omitempty"` // at which tier
}

// A WarmUp is one that is going on.
type WarmUp struct {
	ViewName
	Done uint64 `json:"done"`
	Of   uint64 `json:"of"`
}

// A WarmRequest asks for the batches of a view that this node is to serve to be
// made ready.
type WarmRequest struct {
	View       string  `json:"view"`
	Rank       *uint64 `json:"rank,omitempty"`       // for this one alone
	Background bool    `json:"background,omitempty"` // the answer comes at once
	Check      bool    `json:"check,omitempty"`      // only say what is ready
}

// Made counts the batches of a view that a tier has.
type Made struct {
	Batches uint64 `json:"batches"`
}

// A Warm says how much of a view is ready.
type Warm struct {
	ViewName
	Kind   string `json:"kind"`
	All    uint64 `json:"all"` // that this node is to serve, or this rank to read
	Ready  uint64 `json:"ready"`
	RAM    Made   `json:"ram"` // of these, by the fastest tier that has them
	Packed Made   `json:"packed"`
	NVMe   Made   `json:"nvme"`
	Open   bool   `json:"open,omitempty"`  // the plan is not settled: ranks may start elsewhere
	Begun  bool   `json:"begun,omitempty"` // it goes on without the command that asked
	NoRoom string `json:"full,omitempty"`  // why the rest does not fit

	Elsewhere bool `json:"elsewhere,omitempty"` // there is something, and all is for other nodes to serve

	TooLarge string `json:"too_large,omitempty"` // NoRoom, if nothing that makes way would help
}

// Policy asks by which policy the cache keeps slabs, or sets another.
func (c *Client) Policy(ctx context.Context, r PolicyRequest) (Policy, error) {
	return ask[Policy](ctx, c, "policy", r, nil)
}

// PinCache has a view pinned in the cache, or no longer.
func (c *Client) PinCache(ctx context.Context, r CachePinRequest) (CachePin, error) {
	return ask[CachePin](ctx, c, "pin", r, unseen)
}

// Cached asks how much of each view is cached.
func (c *Client) Cached(ctx context.Context) (CacheList, error) {
	return ask[CacheList](ctx, c, "cached", struct{}{}, unseen)
}

// Evict gives up what is cached of a dataset or a view.
func (c *Client) Evict(ctx context.Context, name string) (Eviction, error) {
	return ask[Eviction](ctx, c, "evict", named{name}, unseen)
}

// Warm makes batches of a view ready, as Create.
func (c *Client) Warm(ctx context.Context, r WarmRequest, progress func(Progress)) (Warm, error) {
	return ask[Warm](ctx, c, "warm", r, progress)
}
