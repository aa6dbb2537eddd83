package control

import (
	"context"
	"time"
)

// A LoadRequest asks how the jobs of a node are supplied: all, or those that
// read a dataset (NAME) or a view of it (NAME@options), whatever the epoch.
type LoadRequest struct {
	Name  string `json:"name,omitempty"`
	Ranks bool   `json:"ranks,omitempty"` // tell each rank's part too
}

// A Load says how the jobs of a node are supplied, and by what.
type Load struct {
	Time      time.Time `json:"time"`  // of the daemon
	Host      string    `json:"host"`  // the node's: its own jobs are told, not those of others
	Nodes     int       `json:"nodes"` // of its cluster
	Mount     string    `json:"mount"`
	Since     time.Time `json:"since"`
	Workers   int       `json:"workers"` // fills at a time
	Ranks     int       `json:"ranks"`   // of all jobs, in the last minute
	Jobs      []Job     `json:"jobs"`    // the one that was opened last first
	Others    Account   `json:"others"`  // of jobs that are no longer told apart
	Forgotten int       `json:"forgotten,omitempty"`
	Flows
	Tiers    []Tier   `json:"tiers"`
	Lacked   *Lack    `json:"lacked,omitempty"` // none if no open has waited for memory
	Pool     *Pool    `json:"pool,omitempty"`   // none if this node has none
	Counters Counters `json:"counters"`
}

// A Lack is the most that memory had no room for, in the last minute in which opens waited
// for it.
type Lack struct {
	Batches int   `json:"batches"` // that were open
	Held    int64 `json:"held"`    // bytes of those, and of what was only mapped
	Asked   int64 `json:"asked"`   // bytes that opens waited for
	Enough  int64 `json:"enough"`  // bytes of memory in which all ranks have a batch, and what they held and asked for has room
}

// An Account is of opens of batches, and of the time of the ranks that opened
// them.
type Account struct {
	OpenCounts
	// RankSeconds go from each rank's first open to its last, without gaps of
	// more than a minute. Stalled are those in which the rank waited for an
	// open or more; Waits are of all opens, so their sum may be more.
	RankSeconds float64 `json:"rank_seconds"`
	Stalled     float64 `json:"stalled_seconds"`
	Waits       Waits   `json:"waits"`

	HDFSWaits  Ways[float64] `json:"hdfs_waits"`       // of Waits.Source
	MemoryWait float64       `json:"ram_wait_seconds"` // of Waits.Admission: there was a worker, and no memory
}

// Share is the part of the ranks' time that was waiting.
func (a Account) Share() float64 {
	if a.RankSeconds <= 0 {
		return 0
	}
	return a.Stalled / a.RankSeconds
}

// A Window is the account of the last seconds.
type Window struct {
	Seconds float64 `json:"seconds"`
	Ranks   int     `json:"ranks"` // that read
	Account
}

// A Job is the ranks of a node that read one view of a dataset, whatever the
// epoch.
type Job struct {
	ViewName         // without the epoch
	Dataset  string  `json:"dataset"`
	Silent   float64 `json:"silent_seconds"` // since its last open
	Waiting  int     `json:"waiting"`        // opens that wait now
	Typical  float64 `json:"wait_p50_seconds"`
	Longest  float64 `json:"wait_p99_seconds"`
	Here     int     `json:"ranks_here"` // that opened anything on this node
	Total    Account `json:"total"`
	Now      Window  `json:"now"`    // some ten seconds
	Minute   Window  `json:"minute"` // some sixty
	Ranks    []Rank  `json:"ranks,omitempty"`
	Facts    *Facts  `json:"facts,omitempty"`     // none if the dataset is gone
	Warning  string  `json:"warning,omitempty"`   // what its opens wait for, if nothing but its ranks can end it
	TooLarge string  `json:"too_large,omitempty"` // why there is no room at all for its largest batch, and how there would be
}

// A Rank is one rank's part in a job.
type Rank struct {
	Rank    uint64 `json:"rank"`
	Waiting int    `json:"waiting"`
	Account
}

// Facts are the sizes of a view.
type Facts struct {
	Ranks uint64 `json:"ranks"`
	Bytes int64  `json:"bytes"` // of an epoch, all ranks together
	Batch int64  `json:"batch"` // bytes of one, on the mean
	// Again says that an epoch has the same bytes to fetch as the one before,
	// so that it helps to keep them.
	Again  bool `json:"again"`
	Remote bool `json:"remote"` // it can be more local to one node than to another
	Flows       // of its dataset, whatever the view
}

// Flows count the bytes that came to a node.
type Flows struct {
	Source  Flow `json:"source"`
	Peers   Flow `json:"peers"`
	Decoded Flow `json:"decoded"`

	HDFS Ways[Flow] `json:"hdfs"` // of Source
}

// A Flow counts what came from one kind of origin.
type Flow struct {
	Bytes int64   `json:"bytes"`
	Busy  float64 `json:"busy_seconds"` // while anything was under way
	Held  float64 `json:"held_seconds"` // of each that was under way, together
	Under int     `json:"under_way"`
}

// Rate is the bytes of a second in which anything was under way.
func (f Flow) Rate() float64 {
	if f.Busy <= 0 {
		return 0
	}
	return float64(f.Bytes) / f.Busy
}

// Load asks how jobs are supplied.
func (c *Client) Load(ctx context.Context, r LoadRequest) (Load, error) {
	return ask[Load](ctx, c, "load", r, nil)
}
