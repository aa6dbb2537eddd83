package simulate

import "rankfs/cache/policy"

// A Cause is a reason for an open to wait.
type Cause uint8

const (
	Source    Cause = iota // bytes from it
	Peer                   // bytes from another node
	Disk                   // bytes from this node's
	Decode                 // a partition to be unpacked
	Plan                   // the plan of which rank reads what
	Admission              // a worker, or memory
	Causes
)

func (c Cause) String() string {
	return [...]string{"source", "peer", "nvme", "decode", "plan", "admission"}[c]
}

// An Outcome is the result of a scenario: its epochs.
type Outcome struct {
	Epochs []Epoch
}

// An Epoch counts the uses and waits of one epoch. A use is that of a partition by a batch; it
// is counted at the level where the partition was then, at its owner.
type Epoch struct {
	Seconds float64
	Working float64 // seconds of all ranks together, without stalls

	Opens  int64 // of batches
	Waited int64 // of them
	Stall  [Causes]float64
	Meet   float64 // seconds that ranks in lockstep waited for others that were stalled, or had more to do

	Uses  [policy.Levels]int64
	Bytes [policy.Levels]int64 // of what was used

	Fetched  int64 // bytes that came from the source
	Peers    int64 // bytes that came from another node's memory or disk, or through it
	Read     int64 // bytes from disks
	Written  int64 // bytes to disks
	Unpacked int64

	Evictions int64
	Moves     int64
}

// Hits is the share of the bytes used that were at a level.
func (e *Epoch) Hits(l policy.Level) float64 {
	all := int64(0)
	for _, b := range e.Bytes {
		all += b
	}
	if all == 0 {
		return 0
	}
	return float64(e.Bytes[l]) / float64(all)
}

// Stalled is the share of the ranks' time that they waited, for others too.
func (e *Epoch) Stalled() float64 {
	sum := e.Meet
	for _, s := range e.Stall {
		sum += s
	}
	if sum == 0 {
		return 0
	}
	return sum / (sum + e.Working)
}

// Last is the last epoch: the first ones find nothing or little in the cache.
func (o Outcome) Last() *Epoch { return &o.Epochs[len(o.Epochs)-1] }
