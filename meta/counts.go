package meta

// OpenCounts count opens of batches that have ended.
type OpenCounts struct {
	Opens  uint64 `json:"opens"`
	Ready  uint64 `json:"opens_ready"`  // without a wait
	Waited uint64 `json:"opens_waited"` // after one, however they ended
	Errors uint64 `json:"open_errors"`
	Bytes  int64  `json:"bytes"`
	// Interrupted were given up by their readers, by a signal or their end; they are no errors.
	Interrupted uint64 `json:"opens_interrupted,omitempty"`
}

// CacheCounts count the opens, fills and choices of levels of a cache, and the handles that are
// open now.
type CacheCounts struct {
	Opens       uint64 `json:"opens"`
	OpensReady  uint64 `json:"opens_ready"` // found the slab complete
	OpensWaited uint64 `json:"opens_waited"`
	Fills       uint64 `json:"fills"`
	FillBytes   uint64 `json:"fill_bytes"`
	FillErrors  uint64 `json:"fill_errors"`
	Prefetched  uint64 `json:"prefetched"` // fills begun before any open
	Restored    uint64 `json:"restored"`   // batches that were on nvme already
	Evicted     uint64 `json:"evicted"`
	CopiedLate  uint64 `json:"copied_late"` // of Evicted, those that went without the copy that they should have, as an open waited
	Choices     uint64 `json:"cache_plans"` // choices of which batches the cache has in which tier
	Handles     int    `json:"open_handles"`
}
