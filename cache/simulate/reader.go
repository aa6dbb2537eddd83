package simulate

import (
	"math"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// A reader is a rank going through its epochs. Steps are counted on through
// all of them.
type reader struct {
	rank  int32
	node  *node
	at    int64   // the step opened last
	seen  float64 // when
	had   float64 // when it was served, if it waited
	size  int64   // of a batch
	large int64   // of the largest so far
	pace  float64 // between its opens, but for what it waited; zero until there were two in order
	run   int     // opens in order
	next  int64   // no step from at to here is missing
	stop  int64   // nothing is made ready from this step on; above at
	bar   bool
	ready []batch // by step modulo their number, which is more than it can have at once

	waiting bool // since then; or for other ranks, in lockstep
	since   float64
	resting bool // between two epochs
}

// A batch is what a rank has open, or what is made ready for it.
type batch struct {
	state  state
	step   int64
	stage  int64   // bytes of memory that are its own
	hold   int32   // the item that it is, in place; below zero: none
	chains int     // that have not ended
	cause  Cause   // what it waits for
	since  float64 // since when
	begun  float64
	bytes  int64
	found  [policy.Levels]int64 // how many uses at which level
	from   [policy.Levels]int64 // and their bytes
	waited bool                 // for a worker
}

type state uint8

const (
	missing state = iota
	queued        // waits for a worker, or for memory
	filling
	ready
)

func (k *reader) batch(step int64) *batch { return &k.ready[step%int64(len(k.ready))] }

// has is the state of a step's batch.
func (k *reader) has(step int64) state {
	if b := k.batch(step); b.step == step {
		return b.state
	}
	return missing
}

// follow notes that a rank opens a step. It is cache.follow.
func (r *run) follow(k *reader, step int64) {
	now := r.clock.now
	if step%r.future.steps == 0 && !r.s.Cross {
		k.run, k.pace, k.next = 0, 0, 0
	} else if step > 0 {
		k.run++
		if d := now - max(k.seen, k.had); k.pace == 0 {
			k.pace = d
		} else {
			k.pace += (d - k.pace) / 4
		}
	}
	k.next = max(k.next, step+1)
	k.at, k.seen, k.bar = step, now, false
}

// window is how many steps ahead of a rank are worth having. It is
// cache.window.
func (r *run) window(k *reader) int64 {
	size := max((k.size+page-1)/page*page, page)
	share := r.s.Memory / int64(max(1, k.node.readers)) / size
	fit := max(1, share-2)
	want := int64(1 + k.run)
	if k.pace > 0 && k.run > 1 {
		latency := 0.0
		if k.node.speed > 0 {
			latency = float64(size) / k.node.speed
		}
		want = ahead.Steps(latency, k.pace, k.node.fills.AtOnce())
	}
	return max(1, min(want, fit, int64(r.s.MaxAhead)))
}

const page = 4096

// wanting is the first step in a reader's window that nobody has begun.
func (r *run) wanting(k *reader) (step int64, ok bool) {
	last := min(k.at+r.window(k), r.last(k.at))
	if k.bar {
		last = min(last, k.stop-1)
	}
	for ; k.next <= last; k.next++ {
		if k.has(k.next) == missing && !r.resident(k, k.next) {
			return k.next, true
		}
	}
	return 0, false
}

// last is the step that a reader may have made ready at most.
func (r *run) last(at int64) int64 {
	epoch := at / r.future.steps
	if r.s.Cross && epoch+1 < int64(r.s.Epochs) {
		epoch++
	}
	return (epoch+1)*r.future.steps - 1
}

// resident reports whether the batch could be opened in place at once.
func (r *run) resident(k *reader, step int64) bool {
	if r.future.empty(k.rank, step) {
		return true
	}
	i, ok := r.inPlace(k, step)
	return ok && k.node.items[i].Now == policy.RAM && !k.node.guard[i].loading
}

// inPlace is the item of the reader's own node that the batch is.
func (r *run) inPlace(k *reader, step int64) (item int32, ok bool) {
	if !r.whole {
		return 0, false
	}
	p := r.future.one(k.rank, step)
	return r.local[p], r.home[p] == k.node.id
}

// ahead picks the batch that is needed soonest and not there or on its way. It
// is cache.ahead.
func (r *run) ahead(n *node) (k *reader, step int64) {
	least := math.Inf(1)
	for i := range r.s.Ranks {
		o := &r.readers[int(n.id)*r.s.Ranks+i]
		if o.at < 0 || r.over(o) {
			continue
		}
		s, ok := r.wanting(o)
		if !ok {
			continue
		}
		if due := float64(s-o.at)*o.pace - (r.clock.now - o.seen); due < least {
			k, step, least = o, s, due
		}
	}
	return k, step
}

// over reports whether a rank has opened its last batch and nobody looks
// beyond.
func (r *run) over(k *reader) bool {
	return !r.s.Cross && (k.at+1)%r.future.steps == 0
}

// unread notes that what may have been made ready of a partition is gone.
func (r *run) unread(n *node, item int32) {
	if !r.whole {
		return
	}
	for i := range r.s.Ranks {
		k := &r.readers[int(n.id)*r.s.Ranks+i]
		if k.at < 0 {
			continue
		}
		if step, ok := r.future.next(n.parts[item], k.at); ok && step < k.next {
			k.next = step
		}
	}
}

// giveUp takes the batch back that was made ready and is needed last.
func (r *run) giveUp(n *node) bool {
	var victim *reader
	lead := int64(0)
	for i := range r.s.Ranks {
		k := &r.readers[int(n.id)*r.s.Ranks+i]
		for step := k.next - 1; step > k.at+lead; step-- {
			if k.has(step) == ready {
				victim, lead = k, step-k.at
				break
			}
		}
	}
	if victim == nil {
		return false
	}
	victim.next = min(victim.next, victim.at+lead)
	r.drop(victim, victim.batch(victim.at+lead))
	r.epoch.Evictions++
	return true
}

// balk notes that there was no room to make a batch ready ahead.
func (k *reader) balk(step int64) {
	if step > k.at {
		k.stop, k.bar = step, true
		k.next = min(k.next, step)
	}
}
