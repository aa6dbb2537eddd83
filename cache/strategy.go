package cache

import (
	"time"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
)

// A strategy is the policy in use, its last choice, and the pins that bind it.
// The cache's lock guards it; the drafter is the choosing goroutine's alone.
type strategy struct {
	name    string
	policy  policy.Policy // computes worths
	drafter policy.Policy // makes the next choice meanwhile; then the two change places
	targets placement
	packing map[[16]byte]pack.Measure // how batches are packed, by the series of their keys; where that pays
	pins    map[[16]byte]policy.Level // by the series of keys: no batch goes below
	opens   uint64                    // that there had been when targets were decided
}

// A placement is where each batch should be.
type placement struct {
	index  map[Key]int32
	levels []policy.Level
}

// of is the level where a batch should be, if that is known.
func (p placement) of(k Key) (at policy.Level, known bool) {
	i, known := p.index[k]
	if !known {
		return at, false
	}
	return p.levels[i], true
}

// Moves are the batches that the last choice wants at another level, and the keys of
// those whose copy was tried since. The cache's lock guards them.
type moves struct {
	up      []promotion // in the order in which readers need them
	down    []uint32    // numbers of idle batches
	tried   map[Key]struct{}
	asked   uint32 // the number of an idle batch to be copied first; 0: none
	copying bool   // the mover has a batch of memory
}

// renew has a choice bring these up, and nothing down yet.
func (m *moves) renew(up []promotion) { m.up, m.down, m.tried, m.asked = up, m.down[:0], nil, 0 }

// A promotion is a batch that should be higher than it is when a reader comes to it.
type promotion struct {
	series     *Series
	rank, step uint64
	at         float64 // when the reader comes, on the policy's clock
	item       int32   // of the choice's problem
}

func newStrategy(name string) (strategy, error) {
	if name == "" {
		name = policy.Names()[0]
	}
	s := strategy{name: name, pins: make(map[[16]byte]policy.Level)}
	var err error
	if s.policy, err = policy.New(name); err != nil {
		return s, err
	}
	s.drafter, err = policy.New(name)
	return s, err
}

// A timeline is the policy's clock: seconds since the cache began.
type timeline struct{ began time.Time }

// seconds is a time on that clock; below zero: never.
func (tl *timeline) seconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return t.Sub(tl.began).Seconds()
}
