package simulate

import (
	"math"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// A reader is a rank going through its epochs. Steps are counted on through
// all of them.
type reader struct {
	ahead.Cursor
	rank  int32
	node  *node
	seen  float64 // when it opened a step
	had   float64 // when it was served, if it waited
	size  int64   // of a batch
	large int64   // of the largest so far
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

// at is the step that a rank opened last; below zero if it has opened none.
func (k *reader) at() int64 { return int64(k.Pos) - 1 }

// follow notes that a rank opens a step.
func (r *run) follow(k *reader, step int64) {
	now := r.clock.now
	if step == 0 || step%r.future.steps == 0 && !r.s.Cross {
		k.Cursor = ahead.Cursor{Run: 1}
	} else {
		k.Run++
		k.Took(now - max(k.seen, k.had))
	}
	k.Open(uint64(step))
	k.seen = now
}

// window is how many steps ahead of a rank are worth having.
func (r *run) window(k *reader) uint64 {
	size := max((k.size+page-1)/page*page, page)
	latency := 0.0
	if k.node.speed > 0 {
		latency = float64(size) / k.node.speed
	}
	return k.Window(size, r.s.Memory/int64(max(1, k.node.readers)), latency, k.node.fills.AtOnce(), r.s.MaxAhead)
}

const page = 4096

// wanting is the first step in a reader's window that is neither there nor on its way.
func (r *run) wanting(k *reader) (step int64, ok bool) {
	at, ok := k.Missing(r.window(k), uint64(r.horizon(k.at())), func(step uint64) bool {
		return k.has(int64(step)) != missing || r.resident(k, int64(step))
	})
	return int64(at), ok
}

// horizon is the first step that a reader may not have made ready.
func (r *run) horizon(at int64) int64 {
	epoch := at / r.future.steps
	if r.s.Cross && epoch+1 < int64(r.s.Epochs) {
		epoch++
	}
	return (epoch + 1) * r.future.steps
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

// ahead picks the batch that is needed soonest and not there or on its way.
func (r *run) ahead(n *node) (k *reader, step int64) {
	least := math.Inf(1)
	for i := range r.s.Ranks {
		o := &r.readers[int(n.id)*r.s.Ranks+i]
		if o.at() < 0 || r.over(o) {
			continue
		}
		s, ok := r.wanting(o)
		if !ok {
			continue
		}
		if due := o.Due(uint64(s), r.clock.now-o.seen); due < least {
			k, step, least = o, s, due
		}
	}
	return k, step
}

// over reports whether a rank has opened its last batch of an epoch, and no batch of
// the next is made ready ahead.
func (r *run) over(k *reader) bool {
	return !r.s.Cross && (k.at()+1)%r.future.steps == 0
}

// unread notes that what may have been made ready of a partition is gone.
func (r *run) unread(n *node, item int32) {
	if !r.whole {
		return
	}
	for i := range r.s.Ranks {
		k := &r.readers[int(n.id)*r.s.Ranks+i]
		if k.at() < 0 {
			continue
		}
		if step, ok := r.future.next(n.parts[item], k.at()); ok {
			k.Gone(uint64(step))
		}
	}
}

// giveUp takes the batch back that was made ready and is needed last.
func (r *run) giveUp(n *node) bool {
	var victim *reader
	lead := int64(0)
	for i := range r.s.Ranks {
		k := &r.readers[int(n.id)*r.s.Ranks+i]
		for step := int64(k.Scan) - 1; step > k.at()+lead; step-- {
			if k.has(step) == ready {
				victim, lead = k, step-k.at()
				break
			}
		}
	}
	if victim == nil {
		return false
	}
	step := victim.at() + lead
	victim.Gone(uint64(step))
	r.drop(victim, victim.batch(step))
	r.epoch.Evictions++
	return true
}
