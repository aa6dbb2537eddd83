package control

import "rankfs/meta"

// What a node has counted is told as it is counted.
type (
	OpenCounts  = meta.OpenCounts
	CacheCounts = meta.CacheCounts
)

// Counters are totals since the mount.
type Counters struct {
	CacheCounts
	OpenErrors    uint64  `json:"open_errors"`
	WaitSeconds   float64 `json:"wait_seconds"`
	Waits         Waits   `json:"waits"`       // WaitSeconds by cause
	BatchReads    uint64  `json:"batch_reads"` // READ requests for batches that reached the daemon
	Lookups       uint64  `json:"lookups"`
	FillSeconds   float64 `json:"fill_seconds"`
	FillCost      Cost    `json:"fill_cost"`
	Recycled      uint64  `json:"recycled"`           // slabs whose memory was used again in place
	ChoiceSeconds float64 `json:"cache_plan_seconds"` // of a processor, that Choices took
	Readers       int     `json:"readers"`            // ranks that read now: they wait, or opened something less than a minute ago; each once in its job
	Views         int     `json:"views"`

	HDFSWaits Ways[float64] `json:"hdfs_waits"` // of Waits.Source
}

// A Cost has the time of the latest fills from sources, as far as it can be told.
type Cost struct {
	Latency float64 `json:"latency_seconds"`  // each, whatever its size
	Rate    float64 `json:"bytes_per_second"` // of its bytes; zero: all were small, or none was
	Bytes   int64   `json:"bytes"`            // of a fill, on the mean
}

// Waits are seconds by what was waited for.
type Waits struct {
	Admission float64 `json:"admission"` // a worker, or memory
	Overhead  float64 `json:"plan"`      // finding which rank reads what, and the daemon's own work
	Source    float64 `json:"source"`
	Peer      float64 `json:"peer"`
	Decode    float64 `json:"decode"`
	Disk      float64 `json:"nvme"`
}

// Sum is all of them.
func (w Waits) Sum() float64 {
	return w.Admission + w.Overhead + w.Source + w.Peer + w.Decode + w.Disk
}

// Ways are the ways in which blocks of HDFS come.
type Ways[T any] struct {
	Files    T `json:"files"`     // of this host, by the blocks' files
	LocalTCP T `json:"local_tcp"` // of this host, through the datanode
	Remote   T `json:"remote"`    // of other hosts
}
