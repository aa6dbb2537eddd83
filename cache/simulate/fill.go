package simulate

import (
	"cmp"
	"slices"

	"rankfs/cache/policy"
)

// Fills are how batches are made ready: by workers, from what caches and the source have.
type fills struct {
	*caches
	source server
	uses   []use // of the batch that is begun
}

// A chain brings a batch the bytes that it needs from one owner, a partition after the
// other, and to another node in the end. Or it is a move.
type chain struct {
	reader *reader
	step   int64
	owner  *node
	uses   []use
	at     int
	doing  doing
	whole  bool // the batch is the partition, in place
	link   flow

	item int32 // of a move
	to   policy.Level
}

// A use is the bytes that a batch takes of a partition.
type use struct {
	part  int32
	bytes int64
}

type doing uint8

const (
	asking  doing = iota // the source, until it sends
	loading              // a partition from the source
	alone                // what is used, and no more: there is no room for the partition, or no use
	asksOne              // the same, until it sends
	reading
	unpacking
	joined  // what another chain loads
	calling // another node, until it sends
	sending
	moving
	packing // what has made room
	nothing
)

var causes = [...]Cause{asking: Source, loading: Source, alone: Source, asksOne: Source, reading: Disk, unpacking: Decode,
	joined: Source, calling: Peer, sending: Peer}

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
			return cmp.Or(cmp.Compare(r.ownerOf(k, x.part), r.ownerOf(k, y.part)), cmp.Compare(x.part, y.part))
		})
	}
	var started [8]int32
	all := started[:0]
	for i := 0; i < len(r.uses); {
		owner := r.ownerOf(k, r.uses[i].part)
		id := r.chain(k, b.step, &r.nodes[owner])
		c := &r.chains[id]
		c.whole = b.hold >= 0
		for ; i < len(r.uses) && r.ownerOf(k, r.uses[i].part) == owner; i++ {
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

// use adds to what the chain brings; grains of one partition are one use.
func (c *chain) use(u use) {
	if n := len(c.uses); n > 0 && c.uses[n-1].part == u.part {
		c.uses[n-1].bytes += u.bytes
		return
	}
	c.uses = append(c.uses, u)
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

// bring begins to bring a partition, unless it is there.
func (r *fills) bring(id int32, u use) (wait bool) {
	c := &r.chains[id]
	n := c.owner
	if r.s.Once {
		c.count(policy.Source, u.bytes)
		return r.ask(id, asksOne)
	}
	i := r.local[u.part]
	it, g := &n.items[i], &n.guard[i]
	it.Last, g.used = r.clock.now, max(g.used, c.step)
	if g.loading {
		c.count(policy.RAM, u.bytes)
		r.do(id, joined)
		g.waiting = append(g.waiting, id)
		return true
	}
	c.count(it.Now, u.bytes)
	switch it.Now {
	case policy.RAM:
		r.rank(n, i)
		return false
	case policy.Disk:
		r.do(id, reading)
		n.read.add(&r.clock, id, u.bytes)
		r.epoch.Read += u.bytes
		return true
	}
	if !c.whole && !r.reserve(n, i) {
		if it.Now == policy.Source {
			return r.ask(id, asksOne)
		}
	} else {
		g.loading = true
	}
	if it.Now == policy.Source {
		return r.ask(id, asking)
	}
	r.do(id, unpacking)
	n.unpack.add(&r.clock, id, it.Bytes[policy.RAM])
	r.epoch.Unpacked += it.Bytes[policy.RAM]
	return true
}

// count notes where a batch finds what it uses. It counts once it is opened.
func (c *chain) count(l policy.Level, bytes int64) {
	b := c.reader.batch(c.step)
	b.found[l]++
	b.from[l] += bytes
}

// ask sends a question to the source.
func (r *fills) ask(id int32, what doing) bool {
	r.do(id, what)
	r.later(id, r.s.Costs.Latency)
	return true
}

// do sets what a chain does now, and with it the cause that its batch waits for.
func (r *fills) do(id int32, what doing) {
	c := &r.chains[id]
	c.doing = what
	r.because(c.reader, c.reader.batch(c.step), causes[what])
}

// because accounts for the wait for a batch so far, and sets its cause from now on.
func (r *fills) because(k *reader, b *batch, cause Cause) {
	if k.waiting && k.at() == b.step {
		r.epoch.Stall[b.cause] += r.clock.now - max(b.since, k.since)
	}
	b.cause, b.since = cause, r.clock.now
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

// stream has the source send what was asked for.
func (r *fills) stream(id int32) {
	c := &r.chains[id]
	bytes, what := c.uses[c.at].bytes, alone
	if c.doing == asking {
		bytes, what = r.s.bytes(c.uses[c.at].part), loading
	}
	r.do(id, what)
	r.epoch.Fetched += bytes
	r.source.add(&r.clock, id, bytes)
}

func (c *chain) total() (bytes int64) {
	for _, u := range c.uses {
		bytes += u.bytes
	}
	return bytes
}

// loaded says that a partition is in memory now. One that was packed remains so
// if that was chosen: then what was unpacked goes with its batch.
func (r *fills) loaded(id int32) {
	c := &r.chains[id]
	n, i := c.owner, r.local[c.uses[c.at].part]
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

// end ends a chain.
func (r *fills) end(id int32) {
	c := &r.chains[id]
	k, b := c.reader, c.reader.batch(c.step)
	r.free(id)
	r.ended(k, b)
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
