package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// admit takes the memory for a batch and begins to fill it, if there is room.
func (r *run) admit(k *reader, b *batch) bool {
	n, need, waitedFor := k.node, r.need(k, b), k.waiting && k.at() == b.step
	limit := anything
	if !waitedFor {
		limit = r.newcomer(n, b, need)
	}
	if !r.room(n, need, limit, waitedFor) {
		return false
	}
	n.memory += need
	b.stage, b.state = need, filling
	r.fill(k, b)
	return true
}

// need is the memory that a batch takes beside what is there.
func (r *run) need(k *reader, b *batch) (bytes int64) {
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
func (r *run) newcomer(n *node, b *batch, bytes int64) float64 {
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
	return n.planner.Worth(&it, r.schedule.when(b.step))
}

// room evicts items worth less than limit until there is so much memory. A batch that
// an open waits for may take the room of batches made ready for later.
func (r *run) room(n *node, bytes int64, limit float64, waitedFor bool) bool {
	for n.memory+bytes > r.s.Memory {
		if i, ok := n.least(inMemory, limit); ok {
			r.evict(n, i)
		} else if !waitedFor || !r.giveUp(n) {
			return false
		}
	}
	return true
}

func (r *run) evict(n *node, i int32) {
	n.put(i, policy.Source)
	r.epoch.Evictions++
	r.unread(n, i)
}

// reserve takes memory for a partition that is loaded for a batch. That never
// waits: the batch holds memory that others wait for.
func (r *run) reserve(n *node, i int32) bool {
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

// ended makes a batch ready when its last chain has ended.
func (r *run) ended(k *reader, b *batch) {
	if b.chains--; b.chains > 0 {
		return
	}
	r.because(k, b, Admission)
	b.state = ready
	n := k.node
	n.workers++
	k.size = b.bytes
	k.large = max(k.large, b.bytes)
	n.measure(float64(b.bytes), r.clock.now-b.begun)
	if b.from[policy.Source] > 0 {
		n.fills.Done(r.clock.now, float64(b.bytes), b.waited)
		n.workers, n.crew = n.workers+n.fills.AtOnce()-n.crew, n.fills.AtOnce()
	}
	if k.waiting && k.at() == b.step {
		k.waiting, k.had = false, r.clock.now
		r.work(k)
	}
	n.freed = true
	r.dispatch(n)
	n.freed = false
}

// measure is cache.rate.
func (n *node) measure(bytes, seconds float64) {
	now := bytes / max(seconds, 1e-6)
	if n.speed == 0 {
		n.speed = now
	}
	n.speed += (now - n.speed) / 8
}

// release gives a batch back that was closed, and lets others have its memory.
func (r *run) release(k *reader, b *batch) {
	r.drop(k, b)
	r.retry(k.node)
}

func (r *run) drop(k *reader, b *batch) {
	n := k.node
	n.memory -= b.stage
	b.stage, b.state = 0, missing
	if i := b.hold; i >= 0 {
		b.hold = -1
		n.guard[i].held--
		r.settle(n, i)
	}
}

// settle says that an item has changed: it may go now, or be moved.
func (r *run) settle(n *node, i int32) {
	if !n.free(i) {
		return
	}
	r.rank(n, i)
	if t := n.target[i]; t > policy.Source && t != n.items[i].Now {
		n.moves.push(i)
		r.move(n)
	}
}

// retry admits those that wait for memory, in order.
func (r *run) retry(n *node) {
	for n.room.len() > 0 {
		t := n.room.first()
		k := &r.readers[t.rank]
		if !r.admit(k, k.batch(t.step)) {
			return
		}
		n.room.pop()
	}
}

// dispatch gives workers something to do.
func (r *run) dispatch(n *node) {
	for n.workers > 0 {
		if n.demand.len() > 0 {
			t := n.demand.pop()
			r.begin(&r.readers[t.rank], t.step)
			continue
		}
		k, step := r.ahead(n)
		if k == nil {
			return
		}
		r.want(k, step)
		r.begin(k, step)
	}
}

// want enters a batch that is to be made ready.
func (r *run) want(k *reader, step int64) *batch {
	b := k.batch(step)
	*b = batch{state: queued, step: step, hold: -1, cause: Admission, since: r.clock.now}
	return b
}
