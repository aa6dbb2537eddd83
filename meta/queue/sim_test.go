package queue_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rankfs/meta/queue"
)

// A cluster is simulated work: discrete events, no clock. A unit takes a
// reader as long as its node's speed says, times noise, and a second more if
// the node does not hold it. The scheduler knows none of that.
type cluster struct {
	t       *testing.T
	s       *queue.Scheduler
	random  *rand.Rand
	nodes   int
	speed   []float64 // by node, units a second
	noise   float64   // sigma of a lognormal
	hold    [][]int   // by unit: nodes
	mortal  float64   // chance that a reader dies of a unit
	readers int

	now       time.Duration
	events    events
	scheduled int
	waiting   []*simReader // in the order in which they were told to
	changes   uint64
	nextID    int

	finished []bool // by unit
	leases   []int  // by unit
	done     int
	local    int // of those done
	makespan time.Duration
}

type simReader struct {
	id, node int
	asked    int // times
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// scenario is one row of what is simulated.
type scenario struct {
	name    string
	nodes   int
	heter   bool    // speeds 0.5 to 1.5 instead of 1
	noise   float64 // of each task
	mortal  float64
	readers int // readers, if not one for each node
}

const unitsPerNode, replicas = 16, 3

func newCluster(t *testing.T, sc scenario, policy queue.Policy, seed uint64) *cluster {
	c := &cluster{t: t, random: rand.New(rand.NewPCG(seed, 1)), nodes: sc.nodes, noise: sc.noise, mortal: sc.mortal,
		readers: sc.readers}
	if c.readers == 0 {
		c.readers = sc.nodes
	}
	for range sc.nodes {
		speed := 1.0
		if sc.heter {
			speed = 0.5 + c.random.Float64()
		}
		c.speed = append(c.speed, speed)
	}
	for range sc.nodes * unitsPerNode {
		c.hold = append(c.hold, c.random.Perm(sc.nodes)[:replicas])
	}
	c.finished, c.leases = make([]bool, len(c.hold)), make([]int, len(c.hold))
	s, err := queue.New(len(c.hold), holders(c.hold), policy, seed)
	if err != nil {
		t.Fatal(err)
	}
	c.s = s
	return c
}

// holders is where whole units are.
func holders(nodes [][]int) func(int) []queue.Holder {
	var of []queue.Holder
	return func(unit int) []queue.Holder {
		of = of[:0]
		for _, node := range nodes[unit] {
			of = append(of, queue.Holder{Node: node, Bytes: 1})
		}
		return of
	}
}

func (c *cluster) after(d time.Duration, do func()) {
	c.scheduled++
	heap.Push(&c.events, event{c.now + d, c.scheduled, do})
}

// run simulates until all units are done and all readers know.
func (c *cluster) run() {
	for _, i := range c.random.Perm(c.readers) {
		c.join(i % c.nodes)
	}
	for len(c.events) > 0 {
		next := heap.Pop(&c.events).(event)
		c.now = next.at
		next.do()
		c.wake()
	}
	if c.done != len(c.hold) {
		c.t.Fatalf("%d of %d units done", c.done, len(c.hold))
	}
}

func (c *cluster) join(node int) {
	w := &simReader{id: c.nextID, node: node}
	c.nextID++
	if err := c.s.Join(c.now, w.id, node); err != nil {
		c.t.Fatal(err)
	}
	c.after(0, func() { c.ask(w) })
}

// wake asks again for all that wait, as long as there is anything new.
func (c *cluster) wake() {
	for c.changes != c.s.Changes() {
		c.changes = c.s.Changes()
		waiting := c.waiting
		c.waiting = nil
		for _, w := range waiting {
			c.ask(w)
		}
	}
}

func (c *cluster) ask(w *simReader) {
	advice, err := c.s.Next(c.now, w.id)
	if err != nil {
		c.t.Fatal(err)
	}
	w.asked++
	switch advice.Verdict {
	case queue.Take:
		c.begin(w, advice)
	case queue.Wait:
		c.wait(w, advice.Until)
	}
}

func (c *cluster) wait(w *simReader, until time.Duration) {
	if until <= c.now {
		c.t.Fatalf("at %v: wait until %v", c.now, until)
	}
	c.waiting = append(c.waiting, w)
	asked := w.asked
	c.after(until-c.now, func() {
		if i := slices.Index(c.waiting, w); i >= 0 && asked == w.asked {
			c.waiting = slices.Delete(c.waiting, i, i+1)
			c.ask(w)
		}
	})
}

func (c *cluster) begin(w *simReader, advice queue.Advice) {
	unit := advice.Unit
	c.leases[unit]++
	if c.finished[unit] || c.leases[unit] > 2 || advice.Second != (c.leases[unit] == 2) {
		c.t.Fatalf("at %v: unit %d, done %v, with %d leases: %+v", c.now, unit, c.finished[unit], c.leases[unit], advice)
	}
	c.s.Began(c.now, w.id, unit)
	takes := c.takes(w.node, unit)
	if c.random.Float64() < c.mortal {
		c.after(time.Duration(c.random.Float64()*float64(takes)), func() { c.die(w, unit) })
		return
	}
	c.after(takes, func() { c.finish(w, unit) })
}

func (c *cluster) takes(node, unit int) time.Duration {
	seconds := math.Exp(c.noise*c.random.NormFloat64()) / c.speed[node]
	if !slices.Contains(c.hold[unit], node) {
		seconds++
	}
	return time.Duration(seconds * float64(time.Second))
}

func (c *cluster) finish(w *simReader, unit int) {
	c.leases[unit]--
	c.s.Finished(c.now, w.id, unit)
	if !c.finished[unit] {
		c.finished[unit] = true
		c.done++
		c.makespan = c.now
		if slices.Contains(c.hold[unit], w.node) {
			c.local++
		}
	}
	c.ask(w)
}

// die has a reader vanish, and another come up elsewhere.
func (c *cluster) die(w *simReader, unit int) {
	c.leases[unit]--
	c.s.Leave(w.id)
	c.after(time.Second, func() { c.join(c.random.IntN(c.nodes)) })
}

// ideal is how long the work would take if it could be divided at will.
func (c *cluster) ideal() float64 {
	var speed float64
	for i := range c.readers {
		speed += c.speed[i%c.nodes]
	}
	return float64(len(c.hold)) / speed
}

// simulated is how many nodes are simulated for a mean, all in all. A tenth of it
// leaves half a per cent of chance in a mean, which is what policies differ by
// where they are alike.
const simulated = 6400

// simulate is the mean over fixed seeds of makespan over ideal, and of locality.
func simulate(t *testing.T, sc scenario, policy queue.Policy) (makespan, local float64) {
	seeds := simulated / sc.nodes
	for seed := range uint64(seeds) {
		c := newCluster(t, sc, policy, seed)
		c.run()
		makespan += c.makespan.Seconds() / c.ideal() / float64(seeds)
		local += float64(c.local) / float64(len(c.hold)) / float64(seeds)
	}
	return makespan, local
}

func TestMakespan(t *testing.T) {
	for _, sc := range []scenario{
		{name: "32 equal", nodes: 32},
		{name: "32 heterogeneous", nodes: 32, heter: true},
		{name: "32 drifting", nodes: 32, heter: true, noise: 0.3},
		{name: "32 dying", nodes: 32, heter: true, noise: 0.3, mortal: 0.05},
		{name: "32 with two readers each", nodes: 32, heter: true, noise: 0.3, readers: 64},
		{name: "32 with readers on half", nodes: 32, heter: true, noise: 0.3, readers: 16},
		{name: "128 equal", nodes: 128},
		{name: "128 heterogeneous", nodes: 128, heter: true},
		{name: "128 drifting", nodes: 128, heter: true, noise: 0.3},
		{name: "128 dying", nodes: 128, heter: true, noise: 0.3, mortal: 0.05},
	} {
		t.Run(sc.name, func(t *testing.T) {
			p, pLocal := simulate(t, sc, queue.PolicyProbability)
			f, fLocal := simulate(t, sc, queue.PolicyFlow)
			t.Logf("probability %.3f of ideal, %.1f%% local; flow %.3f, %.1f%%", p, 100*pLocal, f, 100*fLocal)
			if f > p {
				t.Errorf("flow takes %.3f of ideal, probability %.3f", f, p)
			}
		})
	}
}
