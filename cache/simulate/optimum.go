package simulate

import (
	"rankfs/meta"
	"rankfs/meta/heap"
)

// Optimum is the share of uses that the best of all policies would find in
// memory: one that knows all epochs from the start, may leave out what it reads,
// and needs no memory for what is being read. That is Belady's rule with bypass.
// Partitions are equal, and the nodes have their memory in common.
func Optimum(s Scenario) (hits float64, err error) {
	s, err = s.withDefaults()
	if err != nil {
		return 0, err
	}
	if len(s.Bytes) > 1 || s.Bytes[0] == 0 {
		return 0, meta.Worded(meta.ErrInvalid, "simulate: the optimum is known for equal partitions, and not empty ones")
	}
	uses := s.uses()
	if s.Once || len(uses) == 0 {
		return 0, nil
	}
	b := belady{next: following(uses, s.Partitions), soonest: make([]int, s.Partitions)}
	slabs, found := int(s.Memory/s.Bytes[0])*s.Nodes, 0
	for at, p := range uses {
		if b.soonest[p] == at && at > 0 {
			found++
			b.kept--
		}
		b.keep(p, b.next[at])
		for b.kept > slabs {
			b.drop()
		}
	}
	return float64(found) / float64(len(uses)), nil
}

// uses are the uses of all epochs in order; of a partition in a batch there is one.
func (s *Scenario) uses() (all []int32) {
	f := newFuture(s)
	for epoch := range int64(s.Epochs) {
		if epoch > 0 {
			f.goOn()
		}
		for step := epoch * f.steps; step < (epoch+1)*f.steps; step++ {
			for rank := range int32(s.ranks()) {
				from := len(all)
				f.batch(rank, step, func(p int32, _ int64) { all = append(all, p) })
				all = distinct(all, from)
			}
		}
	}
	return all
}

// distinct leaves one of each from a place on.
func distinct(all []int32, from int) []int32 {
	seen, kept := make(map[int32]bool, len(all)-from), all[:from]
	for _, p := range all[from:] {
		if !seen[p] {
			seen[p] = true
			kept = append(kept, p)
		}
	}
	return kept
}

// following is when each use's partition is used again; zero if it is not.
func following(uses []int32, partitions int) []int {
	next, last := make([]int, len(uses)), make([]int, partitions)
	for at := len(uses) - 1; at >= 0; at-- {
		next[at], last[uses[at]] = last[uses[at]], at
	}
	return next
}

// A belady keeps what is used soonest.
type belady struct {
	next    []int // by use
	soonest []int // by partition that is kept: its next use; zero: it is not kept
	kept    int
	latest  heap.Heap[again]
}

func (b *belady) keep(partition int32, next int) {
	b.soonest[partition] = next
	if next > 0 {
		b.kept++
		b.latest.Push(again{next, partition})
	}
}

// drop leaves out what is used last of all.
func (b *belady) drop() {
	for {
		a := b.latest.Pop()
		if b.soonest[a.partition] == a.at {
			b.soonest[a.partition] = 0
			b.kept--
			return
		}
	}
}

// An again is the next use of a partition that is kept; the last comes first.
type again struct {
	at        int
	partition int32
}

func (a again) Before(b again) bool { return a.at > b.at }
