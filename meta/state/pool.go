package state

import (
	"maps"
	"time"

	"rankfs/meta"
)

// Grace is the life of a job that was held once, and is neither held nor used any
// more.
const Grace = 10 * time.Minute

// A PoolJob is a job of the pool, with its life and its quota. It goes when it was unused for
// as long as it lives, or is removed; its number is never given to another.
type PoolJob struct {
	Name   string
	Number uint64 // later jobs have larger numbers
	Nonce  uint64 // of the command that made it
	UID    uint32
	GID    uint32
	Made   int64            // time of the cluster
	Used   int64            // when a file of it was open last, if none is now
	Held   bool             `json:",omitempty"` // its file hold was open once
	Life   int64            // nanoseconds that it lives unused
	Quota  int64            `json:",omitempty"` // bytes that all copies of its maps may have; zero: any
	Users  map[string]int64 `json:",omitempty"` // nodes on which something of it is open, since when

	Datasets []string `json:"-"` // that are made of it, as it was read; it stays while there are any

	// Reserved is the part of the quota that nodes have reserved for their attempts, in all copies.
	Reserved map[string]Reserved `json:",omitempty"`
}

// Lives is the time that the job lives when it is not used.
func (j *PoolJob) Lives() time.Duration {
	if j.Held {
		return Grace
	}
	return time.Duration(j.Life)
}

// End is when the job goes, if clocks are right, unless a file of it is open, or a dataset
// is made of it.
func (j *PoolJob) End() (at time.Time, ok bool) {
	return time.Unix(0, j.Used).Add(j.Lives()), len(j.Users) == 0 && len(j.Datasets) == 0
}

// Reserved is a node's part of a job's quota, beside the committed maps. Of what it ever
// asked for and gave back the cluster knows the sums, so that a command which comes twice
// counts once.
type Reserved struct {
	Asked, Freed int64
	Bytes        int64 // that it has: what is committed there is taken from it
}

// reserving is the job when a node has reserved that of its quota.
func (j PoolJob) reserving(node string, r Reserved) PoolJob {
	j.Reserved = maps.Clone(j.Reserved)
	if j.Reserved == nil {
		j.Reserved = make(map[string]Reserved)
	}
	j.Reserved[node] = r
	return j
}

// reserved is the sum that all nodes have reserved of the quota.
func (j *PoolJob) reserved() (sum int64) {
	for _, r := range j.Reserved {
		sum += r.Bytes
	}
	return sum
}

func (j PoolJob) without(node string, now int64) PoolJob {
	j.Users = maps.Clone(j.Users)
	delete(j.Users, node)
	if len(j.Users) == 0 {
		j.Users = nil
	}
	j.Used = now
	return j
}

// A PoolStage is a stage of a job: one exchange, of so many maps and parts.
//
//   - It has no spec at first, and then one that may be replaced until an attempt is begun or
//     a map is committed.
//   - Its last map seals it. A sealed stage takes no map but in place of one of which all
//     copies are lost, and that with the same bytes.
//   - A reset makes it what it was before its first attempt, in the next generation. A spec
//     that is replaced makes another generation too. Maps and attempts of an earlier
//     generation are refused.
type PoolStage struct {
	Job        uint64
	Name       string
	Number     uint64     // later stages have larger numbers
	Nonce      uint64     // of the command that made it
	Spec       meta.Stage // zero until it was written
	Begun      bool       `json:",omitempty"` // attempts are written: its spec stays
	Generation uint64     `json:",omitempty"` // how often it was reset, or given another spec
	Resets     uint64     `json:",omitempty"`
	Sealed     bool       `json:",omitempty"`
	Maps       uint64     `json:",omitempty"` // that are committed
	Bytes      int64      `json:",omitempty"` // of these
}

// Numbers is the number of numbers that its maps can have.
func (g *PoolStage) Numbers() uint64 { return numbers(g.Blobs(), g.Spec) }

func numbers(blobs bool, spec meta.Stage) uint64 {
	switch {
	case blobs:
		return maxBlob
	case spec.Maps > 0:
		return spec.Maps
	}
	return meta.MaxMaps
}

// Specified reports whether the stage has a spec.
func (g *PoolStage) Specified() bool { return g.Spec != (meta.Stage{}) }

// Blobs reports whether the stage has the blobs of its job. No spec divides those, and
// nothing seals them.
func (g *PoolStage) Blobs() bool { return g.Name == meta.BlobDir }

// A Blob is the entry of a name in the directory of a job's blobs: a map of the stage
// of that name, by its number; or a directory, whose number no other has. Nodes draw
// numbers at random, so that what is put twice, as a leader was lost, is known again.
type Blob struct {
	Name   string
	Number uint64
	Dir    bool `json:",omitempty"`
}

func (b Blob) key() string { return b.Name }

// maxBlob bounds the numbers of blobs.
const maxBlob = 1 << 60

// blobSpec is the spec of blobs: each is one piece.
var blobSpec = meta.Stage{Parts: 1, Copies: meta.DefaultCopies, Life: meta.DefaultLife}

// StageName names a stage of a job. A number, if it is not zero, says which of those
// that had the name.
type StageName struct {
	Job    string
	Name   string
	Number uint64 `json:",omitempty"`
}
