package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta/queue"
)

// A group is what Raft would hold of a queue, and the rules by which it accepts
// or refuses. Whatever the scheduler says is checked against it.
type group struct {
	s       *queue.Scheduler
	now     time.Duration
	done    []bool
	aside   []bool
	leases  []queue.Lease
	readers []queue.History
	nextID  int
	log     []string // all advice
	fail    func(format string, args ...any)
}

// A deed is one thing that happens to a queue, chosen by numbers.
type deed struct {
	Do, Who, Which int
	Pass           time.Duration
}

var anyDeed = rapid.Custom(func(t *rapid.T) deed {
	return deed{
		Do:    rapid.IntRange(0, 20).Draw(t, "do"),
		Who:   rapid.IntRange(0, 1000).Draw(t, "who"),
		Which: rapid.IntRange(0, 1000).Draw(t, "which"),
		Pass:  time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond,
	}
})

// A story is a queue and all that happens to it.
type story struct {
	Hold   [][]int
	Nodes  int
	Policy queue.Policy
	Seed   uint64
	Deeds  []deed
}

var anyStory = rapid.Custom(func(t *rapid.T) story {
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	set := rapid.SliceOfN(rapid.IntRange(0, nodes-1), 0, 3)
	return story{
		Hold:   rapid.SliceOfN(set, 0, 40).Draw(t, "hold"),
		Nodes:  nodes,
		Policy: rapid.SampledFrom([]queue.Policy{queue.PolicyFlow, queue.PolicyProbability}).Draw(t, "policy"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
		Deeds:  rapid.SliceOfN(anyDeed, 0, 150).Draw(t, "deeds"),
	}
})

func begin(s story, fail func(string, ...any)) *group {
	g := &group{done: make([]bool, len(s.Hold)), aside: make([]bool, len(s.Hold)), fail: fail}
	var err error
	if g.s, err = queue.New(len(s.Hold), holders(s.Hold), s.Policy, s.Seed); err != nil {
		fail("%v", err)
	}
	for _, d := range s.Deeds {
		g.now += d.Pass
		g.happen(d, s.Nodes)
	}
	return g
}

func (g *group) happen(d deed, nodes int) {
	switch {
	case d.Do == 0 || len(g.readers) == 0:
		g.join(d.Which % nodes)
	case d.Do < 9:
		g.next(g.reader(d), d.Which%10 != 0)
	case d.Do < 16:
		g.finish(g.someLease(d))
	case d.Do < 17:
		g.giveBack(g.someLease(d))
	case d.Do < 18:
		g.leave(g.reader(d))
	case d.Do < 19 && d.Which%2 == 0:
		g.restore()
	case d.Do < 19:
		g.agree(g.reader(d), d.Which)
	case d.Do < 20:
		g.setAside(d.Which)
	default:
		g.refuse(g.reader(d), d.Which%(len(g.done)+1))
	}
}

// agree lets a reader have a unit that this scheduler never advised, but perhaps
// the one before it did.
func (g *group) agree(reader, which int) {
	if len(g.done) == 0 {
		return
	}
	unit, had := which%len(g.done), 0
	for _, l := range g.leases {
		if l.Unit == unit {
			had++
			if l.Reader == reader {
				return
			}
		}
	}
	if had < 2 && !g.done[unit] && !g.aside[unit] {
		g.leases = append(g.leases, queue.Lease{Unit: unit, Reader: reader, Since: g.now})
		g.s.Began(g.now, reader, unit)
	}
}

// setAside has the group give a unit to no reader any more.
func (g *group) setAside(which int) {
	if which%3 != 0 || len(g.done) == 0 {
		return
	}
	unit := which % len(g.done)
	if news := g.s.SetAside(unit); news == (g.aside[unit] || g.done[unit]) {
		g.fail("unit %d is set aside: news %v", unit, news)
	}
	g.aside[unit] = true
}

// open reports whether a unit is neither done nor set aside for good.
func (g *group) open(unit int) bool {
	return !g.done[unit] && (!g.aside[unit] || slices.ContainsFunc(g.leases, func(l queue.Lease) bool { return l.Unit == unit }))
}

func (g *group) anyOpen() bool {
	for unit := range g.done {
		if g.open(unit) {
			return true
		}
	}
	return false
}

// refuse turns down a lease that a reader may or may not have been advised to ask for.
func (g *group) refuse(reader, unit int) {
	if !slices.ContainsFunc(g.leases, func(l queue.Lease) bool { return l.Unit == unit && l.Reader == reader }) {
		g.s.Returned(reader, unit)
	}
}

func (g *group) reader(d deed) int { return g.readers[d.Who%len(g.readers)].Reader }

func (g *group) someLease(d deed) queue.Lease {
	if len(g.leases) == 0 {
		return queue.Lease{Unit: -1}
	}
	return g.leases[d.Who%len(g.leases)]
}

func (g *group) join(node int) {
	if err := g.s.Join(g.now, g.nextID, node); err != nil {
		g.fail("%v", err)
	}
	g.readers = append(g.readers, queue.History{Reader: g.nextID, Node: node})
	g.nextID++
}

// next asks for advice and checks it. Now and then the group does not agree.
func (g *group) next(reader int, agree bool) queue.Advice {
	a, err := g.s.Next(g.now, reader)
	if err != nil {
		g.fail("%v", err)
	}
	g.log = append(g.log, fmt.Sprint(reader, a))
	switch {
	case (a.Verdict == queue.Over) == g.anyOpen():
		g.fail("%+v, and done %v, aside %v", a, g.done, g.aside)
	case a.Verdict == queue.Wait && a.Until <= g.now:
		g.fail("wait from %v until %v", g.now, a.Until)
	case a.Verdict == queue.Take:
		g.check(reader, a)
		if agree {
			g.leases = append(g.leases, queue.Lease{Unit: a.Unit, Reader: reader, Since: g.now})
			g.s.Began(g.now, reader, a.Unit)
		}
	}
	return a
}

func (g *group) check(reader int, a queue.Advice) {
	if a.Unit < 0 || a.Unit >= len(g.done) || g.done[a.Unit] || g.aside[a.Unit] {
		g.fail("unit %d is done, or set aside, or none", a.Unit)
	}
	had := 0
	for _, l := range g.leases {
		if l.Unit == a.Unit {
			had++
			if l.Reader == reader {
				g.fail("reader %d is offered unit %d, which it has", reader, a.Unit)
			}
		}
	}
	if had > 1 || had == 1 && !a.Second {
		g.fail("%+v of a unit that %d have", a, had)
	}
}

// finish is a reader's report; the first of two is believed.
func (g *group) finish(l queue.Lease) {
	if l.Unit < 0 {
		return
	}
	g.drop(l)
	g.done[l.Unit] = true
	i := slices.IndexFunc(g.readers, func(h queue.History) bool { return h.Reader == l.Reader })
	g.readers[i].Units++
	g.readers[i].Took += g.now - l.Since
	g.s.Finished(g.now, l.Reader, l.Unit)
	g.leases = slices.DeleteFunc(g.leases, func(o queue.Lease) bool { return o.Unit == l.Unit })
}

func (g *group) giveBack(l queue.Lease) {
	if l.Unit >= 0 {
		g.drop(l)
		g.s.Returned(l.Reader, l.Unit)
	}
}

func (g *group) drop(l queue.Lease) {
	g.leases = slices.DeleteFunc(g.leases, func(o queue.Lease) bool { return o == l })
}

func (g *group) leave(reader int) {
	g.leases = slices.DeleteFunc(g.leases, func(l queue.Lease) bool { return l.Reader == reader })
	g.readers = slices.DeleteFunc(g.readers, func(h queue.History) bool { return h.Reader == reader })
	g.s.Leave(reader)
}

func (g *group) restore() {
	done := make([]uint64, (len(g.done)+63)/64)
	for unit, d := range g.done {
		if d {
			done[unit/64] |= 1 << (unit % 64)
		}
	}
	if err := g.s.Restore(g.now, done, g.leases, g.readers); err != nil {
		g.fail("%v", err)
	}
	for unit, aside := range g.aside {
		if aside {
			g.s.SetAside(unit)
		} else if unit%3 == 0 {
			g.s.Postpone(unit)
		}
	}
}

// drain has all readers work until they are told that it is over.
func (g *group) drain() {
	for range 50 * (len(g.done) + 1) {
		over := 0
		for _, h := range g.readers {
			if g.next(h.Reader, true).Verdict == queue.Over {
				over++
			}
		}
		if over == len(g.readers) {
			return
		}
		g.now += time.Second
		for len(g.leases) > 0 {
			g.finish(g.leases[0])
		}
	}
	g.fail("not done: %v, %d readers", g.done, len(g.readers))
}

// Whatever happens, no advice contradicts the group, and all units get done.
func TestEveryUnitIsFinished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := begin(anyStory.Draw(t, "story"), t.Fatalf)
		if len(g.readers) == 0 {
			g.join(0)
		}
		g.drain()
		if g.anyOpen() {
			t.Fatalf("over, but done: %v, aside: %v", g.done, g.aside)
		}
	})
}

// A reader that is the only one to ask, and asks as often as it is told to, gets each unit that no
// reader has.
func TestNoReaderStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := begin(anyStory.Draw(t, "story"), t.Fatalf)
		g.join(0)
		who := g.readers[rapid.IntRange(0, len(g.readers)-1).Draw(t, "who")].Reader
		for len(g.leases) > 0 {
			g.giveBack(g.leases[0])
		}
		for unit := range g.done {
			for _, h := range g.readers {
				g.refuse(h.Reader, unit)
			}
		}
		for range 40 {
			a := g.next(who, true)
			if a.Verdict != queue.Wait {
				return
			}
			g.now = a.Until
		}
		t.Fatalf("reader %d of %d waits for ever, done: %v", who, len(g.readers), g.done)
	})
}

// A reader whose rank hangs keeps its unit only until another reader would be
// done with it sooner.
func TestHungReader(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			g := begin(story{Hold: make([][]int, 20), Nodes: 1, Policy: policy}, t.Fatalf)
			g.join(0)
			g.join(0)
			hung := g.next(0, true).Unit
			for range 100 {
				a := g.next(1, true)
				switch a.Verdict {
				case queue.Take:
					g.now += time.Second
					g.finish(g.leases[1])
					if a.Second != (a.Unit == hung) {
						t.Fatalf("%+v, and unit %d hangs", a, hung)
					}
				case queue.Wait:
					g.now = a.Until
				case queue.Over:
					return
				}
			}
			t.Fatalf("done: %v", g.done)
		})
	}
}

// The same seed and the same calls get the same advice.
func TestSameSeedSameAdvice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStory.Draw(t, "story")
		if a, b := begin(s, t.Fatalf), begin(s, t.Fatalf); !slices.Equal(a.log, b.log) {
			t.Fatalf("%v\n%v", a.log, b.log)
		}
	})
}
