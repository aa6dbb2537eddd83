package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// A schedule says when a step will be, as it was thought when it was planned:
// what partitions are worth can only be compared on one clock.
type schedule struct {
	at   float64
	step int64
	pace float64 // seconds of a step
}

func (s *schedule) when(step int64) float64 { return s.at + float64(step-s.step)*s.pace }

// plan asks all planners where partitions should be. step is the one that
// ranks are at.
func (r *run) plan(step int64) {
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
		n.planner.Plan(&policy.Problem{
			Now: r.clock.now, Memory: r.s.Memory - r.inUse(n), Disk: r.s.Disk, Items: n.items, Uses: n.uses,
		}, n.target)
		r.carryOut(n)
	}
}

// inUse is memory that planners cannot have: what each rank has open, has just
// closed and is to open, but for what is in memory anyway. Without it a plan that is
// carried out would be undone by the next batch.
func (r *run) inUse(n *node) int64 {
	bytes := int64(0)
	for i := range r.s.Ranks {
		bytes += reserved * r.readers[int(n.id)*r.s.Ranks+i].large
	}
	return max(0, min(bytes, n.coming()-r.s.Memory, r.s.Memory/2))
}

// reserved is how many batches of each rank. In Neutrino's scenarios, with memory
// for half of the packed data, mckp takes 208, 156, 122, 132 and 141 s with none
// to four of them, and where all of it fits 148, 117, 106, 102 and 106 s.
const reserved = 3

// coming is how many bytes are used, as far as was seen and is known.
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

// pacing is how long a step takes, as far as is known.
func (r *run) pacing() float64 {
	pace := r.s.Step
	if done := r.schedule.step - r.future.first*r.future.steps; done > 0 {
		pace = (r.clock.now - r.started) / float64(done)
	} else if n := len(r.out.Epochs); n > 1 {
		pace = r.out.Epochs[n-2].Seconds / float64(r.future.steps)
	}
	return math.Max(pace, 1e-6)
}

// maxUses bounds how far planners see, all nodes together.
const maxUses = 1 << 22

// foresee tells nodes of the uses from here on, as many epochs' as they see.
func (r *run) foresee() {
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
				home := &r.nodes[r.home[p]]
				home.uses = append(home.uses, policy.Use{Item: r.local[p], At: at})
				n++
			})
		}
	}
}

// carryOut ranks what is there for its worth now, and begins the moves.
func (r *run) carryOut(n *node) {
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

// rank enters an item among those that may go, if it may.
func (r *run) rank(n *node, i int32) {
	if n.free(i) {
		n.rank(i, r.next(n, i))
	}
}

// next is when an item is used next.
func (r *run) next(n *node, i int32) float64 {
	step, ok := r.future.next(n.parts[i], max(r.step, n.guard[i].used))
	if !ok {
		return math.Inf(1)
	}
	return r.schedule.when(step)
}

// move starts the node's next move, if none is under way.
func (r *run) move(n *node) {
	for !n.moving && n.moves.len() > 0 {
		i := n.moves.pop()
		to := n.target[i]
		if !n.free(i) || to == policy.Source || to == n.items[i].Now || n.items[i].Bytes[to] < 0 {
			continue
		}
		n.guard[i].moving = true
		if !r.roomFor(n, i, to) {
			n.guard[i].moving = false
			r.rank(n, i)
			continue
		}
		n.take(to, n.items[i].Bytes[to])
		n.moving = true
		id := r.chain(nil, 0, n)
		c := &r.chains[id]
		c.doing, c.item, c.to = moving, i, to
		r.mover(n, n.items[i].Now, to).add(&r.clock, id, n.items[i].Bytes[policy.RAM])
	}
}

// mover is what sets the pace of a move.
func (r *run) mover(n *node, from, to policy.Level) *server {
	switch {
	case to == policy.Disk:
		return &n.write
	case from == policy.Disk:
		return &n.read
	case to == policy.Packed:
		return &n.pack
	}
	return &n.unpack
}

// roomFor evicts what is worth less than the item would be at a level.
func (r *run) roomFor(n *node, i int32, to policy.Level) bool {
	it := n.items[i]
	it.Now = to
	limit, m := n.planner.Worth(&it, r.next(n, i)), medium(to)
	used, budget := &n.memory, r.s.Memory
	if m == onDisk {
		used, budget = &n.disk, r.s.Disk
	}
	for *used+it.Bytes[to] > budget {
		victim, ok := n.least(m, limit)
		if !ok {
			return false
		}
		r.evict(n, victim)
	}
	return true
}

func (r *run) moved(id int32) {
	c := &r.chains[id]
	n, i, from := c.home, c.item, c.home.items[c.item].Now
	switch bytes := n.items[i].Bytes[policy.RAM]; {
	case c.to == policy.Disk:
		r.epoch.Written += bytes
	case from == policy.Disk:
		r.epoch.Read += bytes
	}
	n.guard[i].moving, n.moving = false, false
	if g := &n.guard[i]; g.held > 0 || g.loading { // a batch has it where it was
		n.take(c.to, -n.items[i].Bytes[c.to])
	} else {
		n.put(i, c.to)
		r.epoch.Moves++
	}
	r.lay(id)
	r.settle(n, i)
	r.retry(n)
	r.move(n)
	r.dispatch(n)
}
