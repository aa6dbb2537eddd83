package control

import (
	"context"
	"time"
)

// A Queue is the progress of a view whose batches go to the reader that asks next.
type Queue struct {
	ViewName
	Policy   string    `json:"policy"`
	Batches  uint64    `json:"batches"`
	Done     uint64    `json:"done"`
	Leased   uint64    `json:"leased"`    // readers have them
	Waiting  uint64    `json:"waiting"`   // for a reader
	SetAside uint64    `json:"set_aside"` // given back by too many readers to be handed out again
	Readers  int       `json:"readers"`   // that have the queue open
	Resets   uint64    `json:"run"`       // how often it, or its batches set aside, was begun again
	Opened   time.Time `json:"opened"`
	UID      uint32    `json:"uid"` // the user's who opened it
}

// A QueueDetail is a queue with its readers.
type QueueDetail struct {
	Queue
	Nodes        []QueueNode  `json:"nodes"`
	Leases       []Lease      `json:"leases"`            // the oldest; at most MaxListed
	AsideBatches []AsideBatch `json:"set_aside_batches"` // the first; at most MaxListed
	Tried        []AsideBatch `json:"tried,omitempty"`   // that were given back and may yet be set aside; likewise
}

// MaxListed bounds each list of a QueueDetail.
const MaxListed = 1000

// A QueueNode counts the work of the readers on one host. Where there were very many readers,
// the cluster has forgotten some, and their batches are missing.
type QueueNode struct {
	Host    string  `json:"host"`
	Readers int     `json:"readers"` // that have the queue open
	Leased  int     `json:"leased"`
	Read    uint64  `json:"read"`    // batches that readers have worked through
	Seconds float64 `json:"seconds"` // that they had them
}

// A Lease is a batch that a reader has.
type Lease struct {
	Batch string    `json:"batch"` // rank-N/batch-KKKKKK
	Rank  uint64    `json:"rank"`  // whose queue file the reader has open
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// An AsideBatch is one that readers gave back.
type AsideBatch struct {
	Batch string  `json:"batch"`
	By    []Giver `json:"by"` // the first first
}

// A Giver is a reader that gave a batch back.
type Giver struct {
	Rank  uint64    `json:"rank"`
	Host  string    `json:"host"`
	At    time.Time `json:"at"`
	Cause string    `json:"cause"` // "closed": it ended, or closed the queue; "down", "removed": its node
}

// A ResetRequest begins a queue again: all of it, or only the batches that were set
// aside.
type ResetRequest struct {
	Name     string `json:"name"` // NAME or NAME@options
	SetAside bool   `json:"set_aside,omitempty"`
}

// Queues asks how far each queue is.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	return ask[[]Queue](ctx, c, "queues", struct{}{}, nil)
}

// Queue asks for one queue and its readers.
func (c *Client) Queue(ctx context.Context, name string) (QueueDetail, error) {
	return ask[QueueDetail](ctx, c, "queue", named{name}, nil)
}

// ResetQueue begins a queue again.
func (c *Client) ResetQueue(ctx context.Context, r ResetRequest) (Queue, error) {
	return change[Queue](ctx, c, "reset-queue", r)
}

// DropQueue forgets a queue, and how far it was.
func (c *Client) DropQueue(ctx context.Context, name string) error {
	_, err := change[struct{}](ctx, c, "drop-queue", named{name})
	return err
}

// QueuePolicy asks by which rule new queues hand out batches, or sets another.
func (c *Client) QueuePolicy(ctx context.Context, r PolicyRequest) (Policy, error) {
	return change[Policy](ctx, c, "queue-policy", r)
}
