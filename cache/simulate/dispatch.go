package simulate

import (
	"math"

	"rankfs/cache/policy"
)

// dispatch gives workers something to do.
func (r *fills) dispatch(n *node) {
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

// ahead picks the batch that is needed soonest and not there or on its way.
func (r *fills) ahead(n *node) (k *reader, step int64) {
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

// want enters a batch that is to be made ready.
func (r *fills) want(k *reader, step int64) *batch {
	b := k.batch(step)
	*b = batch{state: queued, step: step, hold: -1, cause: Admission, since: r.clock.now}
	return b
}

// admit takes the memory for a batch and begins to fill it, if there is room.
func (r *fills) admit(k *reader, b *batch) bool {
	n, need, waitedFor := k.node, r.need(k, b), k.waiting && k.at() == b.step
	limit := anything
	if !waitedFor {
		limit = r.newcomer(n, b, need)
	}
	if !r.room(n, need, limit, waitedFor) {
		return false
	}
	n.memory += need
	b.own, b.state = need, filling
	r.fill(k, b)
	return true
}

// retry admits those that wait for memory, in order.
func (r *fills) retry(n *node) {
	for n.room.len() > 0 {
		t := n.room.first()
		k := &r.readers[t.rank]
		if !r.admit(k, k.batch(t.step)) {
			return
		}
		n.room.pop()
	}
}

// release gives a batch back that was closed, and lets others have its memory.
func (r *fills) release(k *reader, b *batch) {
	r.drop(k, b)
	r.retry(k.node)
}

// begin has a worker make a batch ready.
func (r *fills) begin(k *reader, step int64) {
	n, b := k.node, k.batch(step)
	n.workers--
	b.begun, b.waited = r.clock.now, n.freed
	if i, ok := r.inPlace(k, step); ok && !r.s.Once {
		b.hold = i
		n.guard[i].held++
	}
	if r.admit(k, b) {
		return
	}
	if k.waiting && k.at() == step {
		n.room.push(ticket{k.rank, step})
		return
	}
	r.drop(k, b)
	k.BackOff(uint64(step))
	n.workers++
}

// ended makes a batch ready when its last chain has ended.
func (r *fills) ended(k *reader, b *batch) {
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
