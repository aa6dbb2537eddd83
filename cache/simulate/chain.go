package simulate

import "rankfs/cache/policy"

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

// use adds to what the chain brings; grains of one partition are one use.
func (c *chain) use(u use) {
	if n := len(c.uses); n > 0 && c.uses[n-1].part == u.part {
		c.uses[n-1].bytes += u.bytes
		return
	}
	c.uses = append(c.uses, u)
}

func (c *chain) total() (bytes int64) {
	for _, u := range c.uses {
		bytes += u.bytes
	}
	return bytes
}

// count notes where a batch finds what it uses. It counts once it is opened.
func (c *chain) count(l policy.Level, bytes int64) {
	b := c.reader.batch(c.step)
	b.found[l]++
	b.from[l] += bytes
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

// ask sends a question to the source.
func (r *fills) ask(id int32, what doing) bool {
	r.do(id, what)
	r.later(id, r.s.Costs.Latency)
	return true
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
