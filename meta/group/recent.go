package group

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// How many entries a log has in memory too, and how long one may be: a megabyte at most.
const (
	recentEntries = 64
	recentBytes   = 16 << 10
)

// recent are entries that were written last, which are read soon: by a leader for each of its
// followers, and on each of those to be executed. Those that are too long are read from the
// disk. Any goroutine may read them; entries never change.
type recent [recentEntries]atomic.Pointer[raft.Log]

// add takes entries that are in the log now.
func (r *recent) add(logs []*raft.Log) {
	for _, l := range logs {
		at := &r[l.Index%recentEntries]
		if len(l.Data) > recentBytes {
			l = nil
		}
		at.Store(l)
	}
}

// get is the entry of a number, nil if it is not here.
func (r *recent) get(index uint64) *raft.Log {
	if l := r[index%recentEntries].Load(); l != nil && l.Index == index {
		return l
	}
	return nil
}

// forget is for a log of which some is removed.
func (r *recent) forget() {
	for i := range r {
		r[i].Store(nil)
	}
}
