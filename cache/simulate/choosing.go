package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// Choosing has the policies say where partitions should be.
type choosing struct{ *caches }

// choose asks all policies where partitions should be. step is the one that
// ranks are at.
func (r *choosing) choose(step int64) {
	if r.s.Once {
		return
	}
	r.schedule = schedule{r.clock.now, step, r.pacing()}
	r.foresee()
	for i := range r.nodes {
		n := &r.nodes[i]
		if len(n.items) == 0 {
			continue
		}
		n.policy.Choose(&policy.Problem{
			Now: r.clock.now, Memory: r.s.Memory - r.inUse(n), Disk: r.s.Disk, Items: n.items, Uses: n.uses,
		}, n.target)
		r.carryOut(n)
	}
}

// inUse is memory that policies cannot have: what each rank has open, has just
// closed and is to open, but for what is in memory anyway. Without it a choice that is
// carried out would be undone by the next batch.
func (r *choosing) inUse(n *node) int64 {
	bytes := int64(0)
	for i := range r.s.Ranks {
		bytes += reserved * r.readers[int(n.id)*r.s.Ranks+i].large
	}
	return policy.Passing(bytes, n.coming(), r.s.Memory)
}

// reserved is the number of batches of each rank that are. In Neutrino's scenarios mckp
// takes 0.93, 0.92 and 0.93 of the time of the best of the others on the mean with one
// to three of them, and at most 1.17, 1.14 and 1.30.
const reserved = 2

// coming is the number of bytes that are used, as far as was seen and is known.
func (n *node) coming() (bytes int64) {
	for i := range n.guard {
		n.guard[i].known = n.items[i].Last >= 0
	}
	for _, u := range n.uses {
		n.guard[u.Item].known = true
	}
	for i := range n.guard {
		if n.guard[i].known {
			bytes += n.items[i].Bytes[policy.RAM]
		}
	}
	return bytes
}

// pacing is the time of a step, as far as is known.
func (r *choosing) pacing() float64 {
	pace := r.s.Step
	if done := r.schedule.step - r.future.first*r.future.steps; done > 0 {
		pace = (r.clock.now - r.started) / float64(done)
	} else if n := len(r.out.Epochs); n > 1 {
		pace = r.out.Epochs[n-2].Seconds / float64(r.future.steps)
	}
	return math.Max(pace, 1e-6)
}

// maxUses bounds how far policies see, all nodes together.
const maxUses = 1 << 22

// foresee tells nodes of the uses from here on, as many epochs' as they see.
func (r *choosing) foresee() {
	for i := range r.nodes {
		r.nodes[i].uses = r.nodes[i].uses[:0]
	}
	n := 0
	last := r.schedule.step + r.future.steps*int64(r.s.Horizon)
	if r.s.Reads != nil {
		last = min(last, r.future.steps*int64(len(r.s.Reads)))
	}
	for step := r.schedule.step; step < last && n < maxUses; step++ {
		at := r.schedule.when(step)
		for rank := range r.readers {
			r.future.batch(int32(rank), step, func(p int32, _ int64) {
				owner := &r.nodes[r.owner[p]]
				owner.uses = append(owner.uses, policy.Use{Item: r.local[p], At: at})
				n++
			})
		}
	}
}

// carryOut ranks what is there for its worth now, and begins the moves.
func (r *choosing) carryOut(n *node) {
	n.ranked[inMemory].heap, n.ranked[onDisk].heap = n.ranked[inMemory].heap[:0], n.ranked[onDisk].heap[:0]
	n.moves.clear()
	for i := range n.items {
		if !n.free(int32(i)) {
			continue
		}
		r.rank(n, int32(i))
		if t := n.target[i]; t > policy.Source && t != n.items[i].Now {
			n.moves.push(int32(i))
		}
	}
	r.move(n)
}
