package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// Caches are the caches of all nodes: what makes room for what, and what is moved to where
// the policy wants it.
type caches struct{ *world }

// need is the memory that a batch takes beside what is there.
func (r *caches) need(k *reader, b *batch) (bytes int64) {
	if b.hold >= 0 {
		it, g := &k.node.items[b.hold], &k.node.guard[b.hold]
		if g.loading || it.Now == policy.RAM || it.Now == policy.Disk {
			return 0
		}
		return it.Bytes[policy.RAM]
	}
	r.future.batch(k.rank, b.step, func(_ int32, n int64) { bytes += n })
	return bytes
}

// newcomer is the worth of a batch that is made ready ahead: it takes the place only
// of items that are worth less. It will be used last of all, so lru has room for it.
func (r *caches) newcomer(n *node, b *batch, bytes int64) float64 {
	if len(n.items) == 0 {
		return anything
	}
	it := policy.Item{Group: -1, Job: -1}
	it.Bytes = [policy.Levels]int64{policy.Disk: -1, policy.Packed: -1, policy.RAM: bytes}
	it.Wait[policy.Source] = r.s.Costs.Latency + float64(bytes)/math.Min(r.s.Costs.Stream, r.s.Costs.Source)
	if b.hold >= 0 {
		it = n.items[b.hold]
	}
	it.Now, it.Last = policy.RAM, r.clock.now
	return n.policy.Worth(&it, r.schedule.when(b.step))
}

// room evicts items worth less than limit until there is so much memory. A batch that
// an open waits for may take the room of batches made ready for later.
func (r *caches) room(n *node, bytes int64, limit float64, waitedFor bool) bool {
	for n.memory+bytes > r.s.Memory {
		if i, ok := n.least(inMemory, limit); ok {
			r.evict(n, i)
		} else if !waitedFor || !r.giveUp(n) {
			return false
		}
	}
	return true
}

// reserve takes memory for a partition that is loaded for a batch. That never
// waits: the batch holds memory that others wait for.
func (r *caches) reserve(n *node, i int32) bool {
	n.guard[i].loading = true // it shall not make way for itself
	ok := r.room(n, n.items[i].Bytes[policy.RAM], anything, false)
	n.guard[i].loading = false
	if ok {
		n.memory += n.items[i].Bytes[policy.RAM]
	} else {
		r.rank(n, i)
	}
	return ok
}

func (r *caches) drop(k *reader, b *batch) {
	n := k.node
	n.memory -= b.own
	b.own, b.state = 0, missing
	if i := b.hold; i >= 0 {
		b.hold = -1
		n.guard[i].held--
		r.changed(n, i)
	}
}

// changed says that an item has changed: it may go now, or be moved.
func (r *caches) changed(n *node, i int32) {
	if !n.free(i) {
		return
	}
	r.rank(n, i)
	if t := n.target[i]; t > policy.Source && t != n.items[i].Now {
		n.moves.push(i)
		r.move(n)
	}
}

// evict has an item make room. What is in memory and is wanted there, as it is or
// packed, stays packed: the cache packs it ahead.
func (r *caches) evict(n *node, i int32) {
	r.epoch.Evictions++
	r.unread(n, i)
	it := &n.items[i]
	if bytes := it.Bytes[policy.Packed]; it.Now == policy.RAM && n.target[i] >= policy.Packed && bytes >= 0 && bytes < it.Bytes[policy.RAM] {
		n.take(policy.Packed, bytes)
		n.put(i, policy.Packed)
		r.rank(n, i)
		id := r.chain(nil, 0, n)
		r.chains[id].doing = packing
		n.pack.add(&r.clock, id, it.Bytes[policy.RAM])
		return
	}
	n.put(i, policy.Source)
}

// unread notes that what may have been made ready of a partition is gone.
func (r *caches) unread(n *node, item int32) {
	if !r.whole {
		return
	}
	for i := range r.s.Ranks {
		k := &r.readers[int(n.id)*r.s.Ranks+i]
		if k.at() < 0 {
			continue
		}
		if step, ok := r.future.next(n.partitions[item], k.at()); ok {
			k.Gone(uint64(step))
		}
	}
}

// giveUp takes the batch back that was made ready and is needed last.
func (r *caches) giveUp(n *node) bool {
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

// rank enters an item among those that may go, if it may.
func (r *caches) rank(n *node, i int32) {
	if n.free(i) {
		n.rank(i, r.next(n, i))
	}
}

// next is when an item is used next.
func (r *caches) next(n *node, i int32) float64 {
	step, ok := r.future.next(n.partitions[i], max(r.step, n.guard[i].used))
	if !ok {
		return math.Inf(1)
	}
	return r.schedule.when(step)
}

// move starts the node's next move, if none is under way.
func (r *caches) move(n *node) {
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
		n.mover(n.items[i].Now, to).add(&r.clock, id, n.items[i].Bytes[policy.RAM])
	}
}

// roomFor evicts what is worth less than the item would be at a level.
func (r *caches) roomFor(n *node, i int32, to policy.Level) bool {
	it := n.items[i]
	it.Now = to
	limit, m := n.policy.Worth(&it, r.next(n, i)), medium(to)
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

// mover is the server whose rate sets the pace of a move.
func (n *node) mover(from, to policy.Level) *server {
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
