package simulate

import "rankfs/cache/policy"

// Bringing is how a chain gets its partition, from wherever that is.
type bringing struct {
	*caches
	source server
}

// do sets what a chain does now, and with it the cause that its batch waits for.
func (r *bringing) do(id int32, what doing) {
	c := &r.chains[id]
	c.doing = what
	r.because(c.reader, c.reader.batch(c.step), causes[what])
}

// because accounts for the wait for a batch so far, and sets its cause from now on.
func (r *bringing) because(k *reader, b *batch, cause Cause) {
	if k.waiting && k.at() == b.step {
		r.epoch.Stall[b.cause] += r.clock.now - max(b.since, k.since)
	}
	b.cause, b.since = cause, r.clock.now
}

// ask sends a question to the source.
func (r *bringing) ask(id int32, what doing) bool {
	r.do(id, what)
	r.later(id, r.s.Costs.Latency)
	return true
}

// bring begins to bring a partition, unless it is there.
func (r *bringing) bring(id int32, u use) (wait bool) {
	c := &r.chains[id]
	n := c.owner
	if r.s.Once {
		c.count(policy.Source, u.bytes)
		return r.ask(id, asksOne)
	}
	i := r.local[u.partition]
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
func (r *bringing) stream(id int32) {
	c := &r.chains[id]
	bytes, what := c.uses[c.at].bytes, alone
	if c.doing == asking {
		bytes, what = r.s.bytes(c.uses[c.at].partition), loading
	}
	r.do(id, what)
	r.epoch.Fetched += bytes
	r.source.add(&r.clock, id, bytes)
}
