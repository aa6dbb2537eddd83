// Package control is how the rankfs command talks to the daemon that serves a
// mount: JSON over HTTP on a unix socket that only its owner may open.
package control

import (
	"context"
	"time"
)

// A Node is a running daemon. Its methods may be called concurrently. Those
// that take progress call it from one goroutine at a time, often enough for a
// person to watch; they stop soon after ctx is cancelled and leave nothing
// half made.
type Node interface {
	Status() Status
	Datasets() []Dataset
	Dataset(name string) (Dataset, error)
	Create(ctx context.Context, r CreateRequest, progress func(Progress)) (Dataset, error)
	Refresh(ctx context.Context, r RefreshRequest, progress func(Progress)) (Dataset, error)
	Verify(ctx context.Context, name string, progress func(Progress)) (Verification, error)
	Remove(name string) error
}

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

// Progress is how far a long operation has come.
type Progress struct {
	Stage   string `json:"stage"` // "copying", "indexing", "verifying"
	Bytes   int64  `json:"bytes"`
	Total   int64  `json:"total"`
	Records uint64 `json:"records"`
}

// A Dataset is what is known of a registered dataset.
type Dataset struct {
	Name       string            `json:"name"`
	Source     string            `json:"source"`
	State      string            `json:"state"`            // "ready" or "stale"
	Reason     string            `json:"reason,omitempty"` // why it is not ready, and what to do
	Version    string            `json:"version"`          // of the source, as indexed
	Records    uint64            `json:"records"`
	Bytes      int64             `json:"bytes"`
	Chunks     int               `json:"chunks"`
	Ranks      uint64            `json:"ranks"`
	Batch      string            `json:"batch"` // records of one rank in one step, or "chunk"
	Steps      uint64            `json:"steps"`
	Order      string            `json:"order"`
	Seed       uint64            `json:"seed"`
	Tail       string            `json:"tail"`
	Created    time.Time         `json:"created"`
	IndexBytes int64             `json:"index_bytes"`
	Notes      map[string]string `json:"notes,omitempty"` // what the source had to say, as a remainder left out
}

// A Verification is the outcome of reading every record of a dataset back.
type Verification struct {
	Records  uint64 `json:"records"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"` // of all records in the source's order
}

// Passthrough says whether the kernel reads batches without the daemon.
type Passthrough struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // why not, and what would change it
}

// A Tier is a place where slabs live. Bytes are real ones, with those of
// slabs that are deleted but still mapped by a rank.
type Tier struct {
	Name   string `json:"name"` // "ram", "nvme"
	Where  string `json:"where"`
	Budget int64  `json:"budget"`
	Used   int64  `json:"used"`
	Dying  int64  `json:"dying"`            // part of Used: discarded, but a rank still maps it
	Copies int64  `json:"copies,omitempty"` // part of Used: of source files, on nvme
	Slabs  int    `json:"slabs"`
	State  string `json:"state"` // "ok", or what is wrong
}

// Counters are totals since the mount.
type Counters struct {
	Opens       uint64  `json:"opens"`       // of batches
	OpensReady  uint64  `json:"opens_ready"` // found the slab complete
	OpensWaited uint64  `json:"opens_waited"`
	OpenErrors  uint64  `json:"open_errors"`
	WaitSeconds float64 `json:"wait_seconds"`
	BatchReads  uint64  `json:"batch_reads"` // READ requests for batches that reached the daemon
	Lookups     uint64  `json:"lookups"`
	Fills       uint64  `json:"fills"`
	FillBytes   uint64  `json:"fill_bytes"`
	FillSeconds float64 `json:"fill_seconds"`
	FillErrors  uint64  `json:"fill_errors"`
	Prefetched  uint64  `json:"prefetched"` // fills begun before any open
	Evicted     uint64  `json:"evicted"`
	Recycled    uint64  `json:"recycled"` // slabs whose memory was used again in place
	Readers     int     `json:"readers"`  // ranks that are reading now
	OpenHandles int     `json:"open_handles"`
	Views       int     `json:"views"`
}

// HDFS counts what datanodes were asked for since the mount.
type HDFS struct {
	Bytes    uint64 `json:"bytes"`    // received, with what the protocol adds
	Local    uint64 `json:"local"`    // of these, from this host
	Corrupt  uint64 `json:"corrupt"`  // replicas whose checksums did not match
	Failures uint64 `json:"failures"` // replicas given up for that or any other reason
	Streams  int    `json:"streams"`  // under way
}

// A RefreshRequest asks for a dataset to be indexed again. Records counts the
// records of one whose chunks alone were looked for.
type RefreshRequest struct {
	Name    string `json:"name"`
	Records bool   `json:"records,omitempty"`
}

// Status is what a daemon says of itself.
type Status struct {
	Version     string      `json:"version"`
	PID         int         `json:"pid"`
	Mount       string      `json:"mount"`
	State       string      `json:"state"` // the state directory
	Socket      string      `json:"socket"`
	Since       time.Time   `json:"since"`
	Passthrough Passthrough `json:"passthrough"`
	Tiers       []Tier      `json:"tiers"`
	Counters    Counters    `json:"counters"`
	HDFS        *HDFS       `json:"hdfs,omitempty"` // none if no cluster was asked
	Datasets    []Dataset   `json:"datasets"`
	Warnings    []string    `json:"warnings,omitempty"`
}
