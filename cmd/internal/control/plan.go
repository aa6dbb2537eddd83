package control

import (
	"context"
	"time"
)

// A PlanRequest asks which rank reads what in one epoch of a view, and may have that
// settled, or forgotten.
type PlanRequest struct {
	View     string   `json:"view"`            // NAME or NAME@options
	Seats    []Seat   `json:"seats,omitempty"` // where the ranks are, from rank 0 on; none: as the cluster has it
	Settle   bool     `json:"settle,omitempty"`
	Unsettle bool     `json:"unsettle,omitempty"`
	Weights  *Weights `json:"weights,omitempty"` // solve DL-MPI's program too
}

// A Seat is the host of a number of consecutive ranks.
type Seat struct {
	Host  string `json:"host"` // or the id of its node
	Ranks uint64 `json:"ranks"`
}

// Weights say what DL-MPI's program is to be best at. Only their relation
// matters.
type Weights struct {
	Local uint32 `json:"local"`
	Time  uint32 `json:"time"`
}

// The states of a plan.
const (
	PlanSettled = "settled" // the same on all nodes from now on
	PlanOpen    = "open"    // as it would be, were it settled now
	PlanFixed   = "fixed"   // it follows from the view alone
)

// A Survey tells how local the reads of an epoch are by its plan, given where ranks and
// bytes are.
type Survey struct {
	ViewName
	State   string     `json:"state"`
	Reason  string     `json:"reason,omitempty"` // why a fixed one is
	Settled *time.Time `json:"settled,omitempty"`
	Ranks   uint64     `json:"ranks"`
	Steps   uint64     `json:"steps"`
	Looked  uint64     `json:"looked"`            // steps that the numbers below are of: all, or some of many
	Located bool       `json:"located"`           // it is known where the bytes of the source are
	Racks   int        `json:"racks"`             // that it names
	Nodes   []Reads    `json:"nodes"`             // in the order of their first rank
	Plan    Share      `json:"plan"`              // what the plan comes to
	Strict  Share      `json:"strict"`            // what fixed ranks, assign=strict, would come to
	Serving *Serving   `json:"serving,omitempty"` // of batches that are chunks, where not all are local
	Program *Program   `json:"program,omitempty"`
	Warning string     `json:"warning,omitempty"` // why ranks may not be able to read it

	LocalBlocks string `json:"local_blocks,omitempty"` // of a dataset in HDFS: how what is local comes to this node
}

// Reads count the bytes that the ranks of one host read, of the steps looked at.
type Reads struct {
	Host   string `json:"host"`
	Rack   string `json:"rack,omitempty"` // if it is known
	Ranks  uint64 `json:"ranks"`
	Bytes  int64  `json:"bytes"`
	Local  int64  `json:"local"`  // of these, held by the host itself
	Near   int64  `json:"near"`   // and by another of its rack
	Strict int64  `json:"strict"` // what would be local, were the ranks fixed
}

// A Share says how good a division is, of the steps looked at.
type Share struct {
	Local   float64 `json:"local"`   // bytes of all that the reader's host holds
	Balance float64 `json:"balance"` // bytes of the rank that reads most over the mean
	Bytes   Bytes   `json:"bytes"`
}

// Bytes are counted by how far from the reader a host that holds them is.
type Bytes struct {
	Local  int64 `json:"local"` // the reader's host
	Near   int64 `json:"near"`  // another of its rack
	Remote int64 `json:"remote"`
}

// Serving says which hosts send the bytes that are not local, if these are spread as
// evenly as their replicas allow. HDFS chooses for itself, so its busiest host sends
// no less.
type Serving struct {
	Hosts   int     `json:"hosts"`   // that send something
	Busiest string  `json:"busiest"` // of them
	Share   float64 `json:"share"`   // of what is not local, that it sends
}

// A Program is the best division of a dataset's chunks as a whole, by DL-MPI's
// program, among ranks of equal speed.
type Program struct {
	Chunks int     `json:"chunks"`
	Best   Point   `json:"best"`
	Curve  []Point `json:"curve"` // all that no other beats in both, or some of many
	Points int     `json:"points"`
}

// A Point is a division that none other beats both in locality and in time.
type Point struct {
	Local int `json:"local"` // chunks that are local
	Most  int `json:"most"`  // chunks of the rank that reads most
}

// Plan asks which rank reads which bytes in one epoch of a view, and from where. It
// takes as long as the daemon needs to compute that.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (Survey, error) {
	return ask[Survey](ctx, c, "plan", r, unseen)
}
