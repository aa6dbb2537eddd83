package queue

import (
	"cmp"
	"slices"
	"time"
)

// A reader is an open descriptor of the queue.
type reader struct {
	id     int
	node   int
	pace   pace          // of units that its node holds
	leases []lease       // oldest first: it works on the first and has the others in hand
	offer  int           // the unit that it was told to take and has not begun, or -1
	seen   time.Duration // when it last did anything
	quota  int           // units that the schedule still has for it
	fresh  bool          // it joined after the schedule was made
}

// A lease is of a unit that a reader has begun and neither finished nor returned.
type lease struct {
	unit  int
	since time.Duration
	far   bool // its node does not hold the unit
	lost  bool // another reader finished it first; this one may not know yet
}

func (w *reader) leaseOf(unit int) int {
	return slices.IndexFunc(w.leases, func(l lease) bool { return l.unit == unit })
}

// A pace is a mean of the times of units, in which the latest count most.
type pace struct {
	mean float64 // nanoseconds
	n    int
}

// Half of what a pace says is from the last three units: speeds drift within
// minutes, and one unit's time says little (see TestMakespan).
const newest = 0.2

func (p *pace) add(d time.Duration) {
	p.n++
	p.mean += (float64(max(d, 0)) - p.mean) * max(1/float64(p.n), newest)
}

// or is the pace if anything is known of it.
func (p pace) or(otherwise float64) float64 {
	if p.n == 0 {
		return otherwise
	}
	return max(p.mean, 1)
}

// readers are those of a queue and what is known of their speed. Speeds are for
// estimates only: they may be lost, and are then learnt again.
type readers struct {
	byID  []*reader
	nodes []pace
	all   pace
	far   pace // what a unit takes longer if it is not on the reader's node
}

// unknown is the time of a unit when none has been finished yet.
const unknown = time.Second

func (c *readers) find(id int) (int, *reader) {
	i, ok := slices.BinarySearchFunc(c.byID, id, func(w *reader, id int) int { return cmp.Compare(w.id, id) })
	if !ok {
		return i, nil
	}
	return i, c.byID[i]
}

func (c *readers) join(now time.Duration, id, node int) *reader {
	w := &reader{id: id, node: node, offer: -1, seen: now, fresh: true}
	i, _ := c.find(id)
	c.byID = slices.Insert(c.byID, i, w)
	for len(c.nodes) <= node {
		c.nodes = append(c.nodes, pace{})
	}
	return w
}

// usual is the time of a unit for a reader whose speed is unknown.
func (c *readers) usual() float64 {
	return c.all.or(float64(unknown))
}

// near is the time that w takes for a unit on its node. Readers of one node share
// its speed, mostly, so what the node shows counts as three units of w's own.
func (c *readers) near(w *reader) float64 {
	own := min(float64(w.pace.n), 1/newest)
	node := c.nodes[w.node].or(c.usual())
	return max((own*w.pace.mean+3*node)/(own+3), 1)
}

// further is the time that any reader takes longer for a unit from elsewhere: as long
// again, until one has been seen.
func (c *readers) further() float64 {
	return c.far.or(c.usual())
}

func (c *readers) takes(w *reader, far bool) time.Duration {
	if far {
		return time.Duration(c.near(w) + c.further())
	}
	return time.Duration(c.near(w))
}

// ends estimates when w will have done its i-th lease. One that is overdue
// is taken to need as long again as it is overdue: nothing better is known, and so a
// reader that hangs falls behind all others.
func (c *readers) ends(now time.Duration, w *reader, i int) time.Duration {
	var at time.Duration
	for _, l := range w.leases[:i+1] {
		at = max(at, l.since) + c.takes(w, l.far)
		at += 2 * max(0, now-at)
	}
	return at
}

// idle estimates when w will have done all that it has in hand.
func (c *readers) idle(now time.Duration, w *reader) time.Duration {
	at := max(now, c.ends(now, w, len(w.leases)-1))
	if w.offer >= 0 {
		at += c.takes(w, false)
	}
	return at
}

// learn adds what is known when w has done a unit.
func (c *readers) learn(now time.Duration, w *reader, done lease) {
	took := now - done.since
	if done.far && w.pace.n > 0 {
		c.far.add(took - time.Duration(w.pace.mean))
		return
	}
	if done.far {
		took = max(took-time.Duration(c.further()), took/2)
	}
	w.pace.add(took)
	c.nodes[w.node].add(took)
	c.all.add(took)
}

// present says whether w can be counted on to take units: it works on one, or
// asked for one lately. A descriptor may be open and not be read.
func (c *readers) present(now time.Duration, w *reader) bool {
	return len(w.leases) > 0 || w.offer >= 0 || now-w.seen <= time.Duration(4*c.usual())
}
