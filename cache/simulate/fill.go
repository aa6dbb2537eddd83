package simulate

import (
	"cmp"
	"slices"

	"rankfs/cache/policy"
)

// A chain brings a batch the bytes that it needs from one home, a partition after the
// other, and to another node in the end. Or it is a move.
type chain struct {
	reader *reader
	step   int64
	home   *node
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
	nothing
)

var causes = [...]Cause{asking: Source, loading: Source, alone: Source, asksOne: Source, reading: Disk, unpacking: Decode,
	joined: Source, calling: Peer, sending: Peer}

// begin has a worker make a batch ready.
func (r *run) begin(k *reader, step int64) {
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

// fill starts a chain for each home of what the batch is made of.
func (r *run) fill(k *reader, b *batch) {
	r.uses = r.uses[:0]
	b.bytes = 0
	r.future.batch(k.rank, b.step, func(p int32, n int64) {
		r.uses = append(r.uses, use{p, n})
		b.bytes += n
	})
	if len(r.uses) > 1 {
		slices.SortStableFunc(r.uses, func(x, y use) int {
			return cmp.Or(cmp.Compare(r.homeOf(k, x.part), r.homeOf(k, y.part)), cmp.Compare(x.part, y.part))
		})
	}
	var started [8]int32
	all := started[:0]
	for i := 0; i < len(r.uses); {
		home := r.homeOf(k, r.uses[i].part)
		id := r.chain(k, b.step, &r.nodes[home])
		c := &r.chains[id]
		c.whole = b.hold >= 0
		for ; i < len(r.uses) && r.homeOf(k, r.uses[i].part) == home; i++ {
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

// homeOf is the node that brings a partition for a reader.
func (r *run) homeOf(k *reader, part int32) int32 {
	if r.s.Once {
		return k.node.id
	}
	return r.home[part]
}

// chain takes one that is idle.
func (r *run) chain(k *reader, step int64, home *node) int32 {
	if len(r.idle) == 0 {
		r.idle = append(r.idle, int32(len(r.chains)))
		r.chains = append(r.chains, chain{})
		r.clock.grow(int(r.first) + len(r.chains))
	}
	id := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	c := &r.chains[id]
	*c = chain{reader: k, step: step, home: home, uses: c.uses[:0]}
	return id
}

// lay puts a chain aside that has ended.
func (r *run) lay(id int32) {
	r.chains[id].doing = nothing
	r.idle = append(r.idle, id)
}

// advance goes through what a chain brings until it has to wait.
func (r *run) advance(id int32) {
	for c := &r.chains[id]; c.at < len(c.uses); c.at++ {
		if r.bring(id, c.uses[c.at]) {
			return
		}
		c = &r.chains[id]
	}
	c := &r.chains[id]
	if c.home != c.reader.node {
		r.do(id, calling)
		r.later(id, r.s.Costs.LinkLatency)
		return
	}
	r.end(id)
}

// bring begins to bring a partition, unless it is there.
func (r *run) bring(id int32, u use) (wait bool) {
	c := &r.chains[id]
	n := c.home
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
func (r *run) ask(id int32, what doing) bool {
	r.do(id, what)
	r.later(id, r.s.Costs.Latency)
	return true
}

func (r *run) later(id int32, seconds float64) {
	r.clock.wake(r.first+id, r.clock.now+seconds)
}

// do sets what a chain does now, and with it the cause that its batch waits for.
func (r *run) do(id int32, what doing) {
	c := &r.chains[id]
	c.doing = what
	r.because(c.reader, c.reader.batch(c.step), causes[what])
}

// because accounts for the wait for a batch so far, and sets its cause from now on.
func (r *run) because(k *reader, b *batch, cause Cause) {
	if k.waiting && k.at() == b.step {
		r.epoch.Stall[b.cause] += r.clock.now - max(b.since, k.since)
	}
	b.cause, b.since = cause, r.clock.now
}

// go on with a chain when what it waited for has happened.
func (r *run) proceed(id int32) {
	c := &r.chains[id]
	switch c.doing {
	case asking, asksOne:
		r.stream(id)
		return
	case calling:
		r.do(id, sending)
		bytes := c.total()
		r.epoch.Peers += bytes
		r.connect(id, c.home, c.reader.node, bytes)
		return
	case sending:
		r.disconnect(id)
		r.end(id)
		return
	case moving:
		r.moved(id)
		return
	case loading, unpacking:
		r.loaded(id)
		c = &r.chains[id]
	}
	c.at++
	r.advance(id)
}

// stream has the source send what was asked for.
func (r *run) stream(id int32) {
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
// if the plan has it so: then what was unpacked goes with its batch.
func (r *run) loaded(id int32) {
	c := &r.chains[id]
	n, i := c.home, r.local[c.uses[c.at].part]
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
			b.stage = 0
		}
	case !c.whole:
		n.memory -= it.Bytes[policy.RAM]
	}
	waiting := g.waiting
	g.waiting = nil
	r.settle(n, i)
	for _, other := range waiting {
		r.chains[other].at++
		r.advance(other)
	}
	r.retry(n)
}

// end ends a chain.
func (r *run) end(id int32) {
	c := &r.chains[id]
	k, b := c.reader, c.reader.batch(c.step)
	r.lay(id)
	r.ended(k, b)
}
