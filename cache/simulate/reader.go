package simulate

import (
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

// A batch is open at a rank, or made ready for it.
type batch struct {
	state  state
	step   int64
	own    int64   // bytes of memory, which no item has
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
