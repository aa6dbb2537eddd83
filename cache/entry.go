package cache

import (
	"slices"
	"time"

	"rankfs/cache/policy"
	"rankfs/meta/stall"
)

// An entry is a batch that is being filled or open. It goes from filling to ready
// or failed, once, and done is closed then.
//
//   - filling: it is in slabs. One goroutine has it (a worker, the open or the input
//     that made it, what has checked it out), or it is in the queue's demand.
//   - ready: its form is complete, and does not change. It is in slabs as long as it
//     has holders or waiters; then it becomes idle, and the idle table has it.
//   - failed: it has err, and is in slabs no more. An open that waited for it leaves with
//     err, and the next one makes another entry.
//
// slabs have one entry of a key at most, and none of a key that is idle in a form that
// an open gets; a packed form of it may be idle meanwhile. A stale entry is in slabs
// no more either: it lives until its holders have gone, beside a new one of its key.
//
// The cache's lock guards an entry, but for form (dense of it is guarded), waited, began and
// looked. Those belong to the goroutine that fills it, and form at the end to the one
// that took the entry out of the cache.
type entry struct {
	batch
	request
	state   state
	done    chan struct{} // nil if it was idle in a file of its own
	err     error
	waiters int      // opens waiting on done, and fills
	fills   []*entry // these fills, which copy from it
	holders int      // opens not released, and the mover while it copies
	threads []int32  // of the opens not released, as far as they are known
	copied  bool     // it was taken to be copied, and not opened since: that is no use of it
	stale   bool     // its bytes are not what they were
}

// awaited reports whether an open waits for e, or for what is made of it.
func (e *entry) awaited() bool {
	return e.waiters > len(e.fills) || slices.ContainsFunc(e.fills, (*entry).awaited)
}

type state uint8

const (
	filling state = iota // or about to be
	ready
	failed
)

// A request is the open or the reader for which an entry is filled, and the progress
// of the fill.
type request struct {
	rank, step   uint64       // of its series
	usage        *usage       // the account that it is on
	prefetchFor  *reader      // the reader ahead of which it is made, if no open waited for it
	prefetchStep uint64       // that reader's step
	clock        *stall.Clock // of the fill, while state is filling
	stalled      error        // what the fill waits for, while it waits
	began        time.Time    // when the fill had room
	looked       time.Time    // when the fill last found out which opens have the memory
	ahead        bool         // its fill was begun before any open
	waited       bool         // it was wanted before a worker was free
	from         policy.Level // where its bytes came from
}
