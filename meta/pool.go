package meta

// PoolStats are the figures of the shuffle pool on a node, and of all of it.
type PoolStats struct {
	Used    int64  `json:"used"`              // memory of this node
	Budget  int64  `json:"budget"`            // of that
	Disk    int64  `json:"nvme_used"`         // of the disk of this node
	DiskMax int64  `json:"nvme_budget"`       // of that; zero: there is none
	Waiting int    `json:"waiting"`           // opens of parts on this node
	Damaged uint64 `json:"damaged,omitempty"` // copies that this node gave up, as they had other bytes
	Jobs    int    `json:"jobs"`              // of all nodes, as what follows
	Stages  int    `json:"stages"`
	PoolTally
}

// A PoolTally counts maps that are committed, and their copies.
type PoolTally struct {
	Maps    uint64 `json:"maps"`
	Bytes   int64  `json:"bytes"`          // of one copy of each
	Missing int    `json:"copies_missing"` // that should be on nodes that are up
	Away    int    `json:"maps_away"`      // whose copies are all on nodes that are down
	Lost    int    `json:"maps_lost"`      // of which there is no copy
}
