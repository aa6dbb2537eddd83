package queue

import (
	"math"
	"testing"
	"time"
)

// Algorithm 1 by the book: for each free unit, the probability that a reader of
// node i gets it.
func byTheBook(p *probability, i int) []float64 {
	odds := make([]float64, len(p.state))
	local := p.freeUnits.nodes[i].here > 0
	var sum, alone float64
	for unit := range odds {
		if p.state[unit] != stateFree || local && !p.holds(i, unit) {
			continue
		}
		odds[unit] = math.Inf(1)
		for k := range p.freeUnits.nodes {
			if k != i && p.holds(k, unit) {
				odds[unit] = min(odds[unit], float64(p.freeUnits.nodes[k].here)/p.speed[k])
			}
		}
		if math.IsInf(odds[unit], 1) {
			alone++
		} else {
			sum += odds[unit]
		}
	}
	for unit, t := range odds {
		switch {
		case alone > 0 && math.IsInf(t, 1):
			odds[unit] = 1 / alone
		case alone > 0:
			odds[unit] = 0
		case sum > 0:
			odds[unit] = t / sum
		}
	}
	return odds
}

func TestDrawsAreByTheBook(t *testing.T) {
	holders := [][]int{{0, 1}, {0, 2}, {0, 2}, {0, 1, 2}, {1, 2}, {2, 3}, {3}, {3, 1}}
	for _, tt := range []struct {
		name string
		hold [][]int
		node int
		gone []int
	}{
		{"local", holders, 0, nil},
		{"no other node has it", holders, 3, nil},
		{"remote", holders, 0, []int{0, 1, 2, 3}},
		{"remote, few", holders, 0, []int{0, 1, 2, 3, 4, 6}},
		{"no node has it", append(holders, nil, nil), 0, []int{0, 1, 2, 3}},
		{"one rare group of many", append(make([][]int, 200), []int{0, 1}, []int{0, 2}), 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := unitsOf(t, tt.hold)
			for _, unit := range tt.gone {
				p.state[unit] = 1
				p.take(unit)
			}
			a := newProbability(p, &readers{}, 7)
			a.speed = []float64{1, 0.5, 2, 1.5}[:len(p.nodes)]
			a.known = len(a.speed)
			compare(t, a, tt.node)
		})
	}
}

func unitsOf(t *testing.T, hold [][]int) *freeUnits {
	p, err := newFreeUnits(len(hold), func(unit int) (of []Holder) {
		for _, k := range hold[unit] {
			of = append(of, Holder{k, 1})
		}
		return of
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compare draws often enough that five standard deviations mean a wrong draw.
// The seed is fixed, so what passes once passes always.
func compare(t *testing.T, a *probability, node int) {
	const draws = 100_000
	counts := make([]float64, len(a.state))
	for range draws {
		unit, _, _ := a.pick(0, &reader{node: node})
		counts[unit]++
	}
	for unit, want := range byTheBook(a, node) {
		sigma := math.Sqrt(draws * want * (1 - want))
		if off := math.Abs(counts[unit] - draws*want); off > 5*sigma+1e-6 {
			t.Errorf("unit %d was drawn %v times, want %.0f", unit, counts[unit], draws*want)
		}
	}
}

// A reader that was seen to be twice as fast has half of T.
func TestSpeedFollowsHistory(t *testing.T) {
	c := &readers{}
	a := newProbability(unitsOf(t, [][]int{{0}, {1}, {2}}), c, 1)
	for id, each := range []time.Duration{time.Second, 2 * time.Second} {
		w := c.join(0, id, id)
		for range 2 {
			c.learn(each, w, lease{})
			a.follow(id)
		}
	}
	if fast, slow, other := a.busy(0), a.busy(1), a.busy(2); slow != 2*fast || math.Abs(other-fast/0.75) > 1 {
		t.Errorf("T of %v, %v and %v", fast, slow, other)
	}
}
