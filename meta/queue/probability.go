package queue

import (
	"math"
	"math/rand/v2"
	"time"
)

// probability is Algorithm 1 of DL-MPI. A reader of node i that asks gets a
// unit that its node holds or, if none is left, any; of these, x is drawn with
// a probability in proportion to
//
//	T(x) = min over the other holders k of x of |D_k| / s_k
//
// where D_k are the free units that k holds and s_k is its speed, as it was
// when one of its readers last asked. So what others will come to last goes
// first. What no other node holds has an infinite T: it goes before all others,
// each with the same probability.
type probability struct {
	*freeUnits
	*readers
	random *rand.Rand
	speed  []float64 // by node: units a nanosecond, or 0 if it is not known
	known  int       // nodes whose speed is known
	sum    float64   // of what is known
}

// tries is how often a draw is tried by rejection before weights are summed.
// Both draw from the same distribution; the sum costs a look at each candidate.
const tries = 32

func newProbability(p *freeUnits, c *readers, seed uint64) *probability {
	return &probability{freeUnits: p, readers: c, random: rand.New(rand.NewPCG(seed, 0))}
}

func (p *probability) took(int, int)     {}
func (p *probability) back(int)          {}
func (p *probability) left()             {}
func (p *probability) schedules() uint64 { return 0 }

// pick never has a reader wait: there is always a candidate while a unit is free.
func (p *probability) pick(_ time.Duration, w *reader) (int, time.Duration, bool) {
	p.follow(w.node)
	g := p.alone(w.node)
	if g < 0 {
		g = p.draw(w.node)
	}
	run := p.groups[g]
	return int(p.members[run.member+p.random.Int32N(run.free)]), 0, true
}

// follow updates the speed of a node from the history of its readers.
func (p *probability) follow(k int) {
	for len(p.speed) < len(p.freeUnits.nodes) {
		p.speed = append(p.speed, 0)
	}
	var speed float64
	for _, w := range p.byID {
		if w.node == k && w.pace.n > 0 {
			speed += 1 / w.pace.or(1)
		}
	}
	if speed == 0 {
		return
	}
	if p.speed[k] == 0 {
		p.known++
	}
	p.sum += speed - p.speed[k]
	p.speed[k] = speed
}

// busy is |D_k|/s_k. A node of unknown speed has the mean of the others, or 1.
func (p *probability) busy(k int) float64 {
	speed := 1.0
	switch {
	case p.speed[k] > 0:
		speed = p.speed[k]
	case p.known > 0:
		speed = p.sum / float64(p.known)
	}
	return float64(p.freeUnits.nodes[k].here) / speed
}

// alone is the group of candidates that no node but i holds, or -1.
func (p *probability) alone(i int) int32 {
	g := p.freeUnits.nodes[i].sole
	if p.freeUnits.nodes[i].here == 0 {
		g = p.nowhere
	}
	if g >= 0 && p.groups[g].free > 0 {
		return g
	}
	return -1
}

// draw chooses the group of the next unit of node i. The units of a group have
// the same T, so a group weighs as much as its free units together.
func (p *probability) draw(i int) int32 {
	candidates, n := func(j int) int32 { return p.live[j] }, len(p.live)
	if local := p.freeUnits.nodes[i].live; len(local) > 0 {
		candidates, n = func(j int) int32 { return p.edges[local[j]].group }, len(local)
	}
	most := float64(p.largest) * p.busiest()
	for range tries {
		g := candidates(p.random.IntN(n))
		if p.random.Float64()*most < p.weight(g, i) {
			return g
		}
	}
	return p.bySum(candidates, n, i)
}

func (p *probability) busiest() float64 {
	var most float64
	for k := range p.freeUnits.nodes {
		most = max(most, p.busy(k))
	}
	return most
}

func (p *probability) weight(g int32, i int) float64 {
	least := math.Inf(1)
	for _, e := range p.of(g) {
		if int(e.node) != i {
			least = min(least, p.busy(int(e.node)))
		}
	}
	return least * float64(p.groups[g].free)
}

func (p *probability) bySum(candidates func(int) int32, n, i int) int32 {
	var sum float64
	for j := range n {
		sum += p.weight(candidates(j), i)
	}
	left := p.random.Float64() * sum
	for j := range n - 1 {
		g := candidates(j)
		if left -= p.weight(g, i); left < 0 {
			return g
		}
	}
	return candidates(n - 1)
}
