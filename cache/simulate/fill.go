package simulate

import (
	"cmp"
	"math"
	"slices"

	"rankfs/cache/policy"
)

// Fills make batches ready: workers do, from what caches and the source have.
type fills struct {
	*bringing
	uses []use // of the batch that is begun
}

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

// fill starts a chain for each owner of what the batch is made of.
func (r *fills) fill(k *reader, b *batch) {
	r.uses = r.uses[:0]
	b.bytes = 0
	r.future.batch(k.rank, b.step, func(p int32, n int64) {
		r.uses = append(r.uses, use{p, n})
		b.bytes += n
	})
	if len(r.uses) > 1 {
		slices.SortStableFunc(r.uses, func(x, y use) int {
			return cmp.Or(cmp.Compare(r.ownerOf(k, x.partition), r.ownerOf(k, y.partition)), cmp.Compare(x.partition, y.partition))
		})
	}
	var started [8]int32
	all := started[:0]
	for i := 0; i < len(r.uses); {
		owner := r.ownerOf(k, r.uses[i].partition)
		id := r.chain(k, b.step, &r.nodes[owner])
		c := &r.chains[id]
		c.whole = b.hold >= 0
		for ; i < len(r.uses) && r.ownerOf(k, r.uses[i].partition) == owner; i++ {
			c.use(r.uses[i])
		}
		all = append(all, id)
	}
	b.chains = len(all) + 1
	for _, id := range all {
		r.advance(id)
	}
	r.ended(k, b) // the one that was counted too much, lest it be ready before all are begun
}

// advance goes through what a chain brings until it has to wait.
func (r *fills) advance(id int32) {
	for c := &r.chains[id]; c.at < len(c.uses); c.at++ {
		if r.bring(id, c.uses[c.at]) {
			return
		}
		c = &r.chains[id]
	}
	c := &r.chains[id]
	if c.owner != c.reader.node {
		r.do(id, calling)
		r.later(id, r.s.Costs.LinkLatency)
		return
	}
	r.end(id)
}

// go on with a chain when what it waited for has happened.
func (r *fills) proceed(id int32) {
	c := &r.chains[id]
	switch c.doing {
	case asking, asksOne:
		r.stream(id)
		return
	case calling:
		r.do(id, sending)
		bytes := c.total()
		r.epoch.Peers += bytes
		r.connect(id, c.owner, c.reader.node, bytes)
		return
	case sending:
		r.disconnect(id)
		r.end(id)
		return
	case moving:
		r.moved(id)
		return
	case packing:
		r.free(id)
		return
	case loading, unpacking:
		r.loaded(id)
		c = &r.chains[id]
	}
	c.at++
	r.advance(id)
}

// loaded says that a partition is in memory now. One that was packed remains so
// if that was chosen: then what was unpacked goes with its batch.
func (r *fills) loaded(id int32) {
	c := &r.chains[id]
	n, i := c.owner, r.local[c.uses[c.at].partition]
	it, g := &n.items[i], &n.guard[i]
	if !g.loading {
		return // unpacked without room: nothing stays
	}
	g.loading = false
	b := c.reader.batch(c.step)
	switch {
	case it.Now == policy.Source || n.target[i] == policy.RAM:
		n.put(i, policy.RAM)
		if c.whole {
			b.own = 0
		}
	case !c.whole:
		n.memory -= it.Bytes[policy.RAM]
	}
	waiting := g.waiting
	g.waiting = nil
	r.changed(n, i)
	for _, other := range waiting {
		r.chains[other].at++
		r.advance(other)
	}
	r.retry(n)
}

func (r *fills) moved(id int32) {
	c := &r.chains[id]
	n, i, from := c.owner, c.item, c.owner.items[c.item].Now
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
	r.free(id)
	r.changed(n, i)
	r.retry(n)
	r.move(n)
	r.dispatch(n)
}

// end ends a chain.
func (r *fills) end(id int32) {
	c := &r.chains[id]
	k, b := c.reader, c.reader.batch(c.step)
	r.free(id)
	r.ended(k, b)
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
