package control

// Counters are totals since the mount.
type Counters struct {
	Opens         uint64  `json:"opens"`       // of batches
	OpensReady    uint64  `json:"opens_ready"` // found the slab complete
	OpensWaited   uint64  `json:"opens_waited"`
	OpenErrors    uint64  `json:"open_errors"`
	WaitSeconds   float64 `json:"wait_seconds"`
	Waits         Waits   `json:"waits"`       // WaitSeconds by cause
	BatchReads    uint64  `json:"batch_reads"` // READ requests for batches that reached the daemon
	Lookups       uint64  `json:"lookups"`
	Fills         uint64  `json:"fills"`
	FillBytes     uint64  `json:"fill_bytes"`
	FillSeconds   float64 `json:"fill_seconds"`
	FillCost      Cost    `json:"fill_cost"`
	FillErrors    uint64  `json:"fill_errors"`
	Prefetched    uint64  `json:"prefetched"` // fills begun before any open
	Restored      uint64  `json:"restored"`   // batches that were on nvme already
	Evicted       uint64  `json:"evicted"`
	CopiedLate    uint64  `json:"copied_late"`        // of Evicted, those that went without the copy that they should have, as an open waited
	Recycled      uint64  `json:"recycled"`           // slabs whose memory was used again in place
	Choices       uint64  `json:"cache_plans"`        // choices of which batches the cache has in which tier
	ChoiceSeconds float64 `json:"cache_plan_seconds"` // of a processor, that these took
	Readers       int     `json:"readers"`            // ranks that read now: they wait, or opened something less than a minute ago; each once in its job
	OpenHandles   int     `json:"open_handles"`
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

// Ways are the ways in which blocks of HDFS come.
type Ways[T any] struct {
	Files    T `json:"files"`     // of this host, by the blocks' files
	LocalTCP T `json:"local_tcp"` // of this host, through the datanode
	Remote   T `json:"remote"`    // of other hosts
}
