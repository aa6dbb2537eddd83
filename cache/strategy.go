package cache

import (
	"rankfs/cache/pack"
	"rankfs/cache/policy"
)

// A strategy is the policy in use, its last plan, and the pins that bind it.
// The cache's lock guards it; the drafter is the planning goroutine's alone.
type strategy struct {
	name    string
	planner policy.Planner // computes worths
	drafter policy.Planner // makes the next plan meanwhile; then the two change places
	targets placement
	packing map[[16]byte]pack.Measure // how batches are packed, by the plan of their keys; where that pays
	pins    map[[16]byte]policy.Level // by the plan of keys: no batch goes below
	opens   uint64                    // that there had been when targets were decided
}

// A placement is where each batch should be.
type placement struct {
	index  map[Key]int32
	levels []policy.Level
}

// of is where a batch should be, if that is planned.
func (p placement) of(k Key) (at policy.Level, known bool) {
	i, known := p.index[k]
	if !known {
		return at, false
	}
	return p.levels[i], true
}

func newStrategy(name string) (strategy, error) {
	if name == "" {
		name = policy.Names()[0]
	}
	s := strategy{name: name, pins: make(map[[16]byte]policy.Level)}
	var err error
	if s.planner, err = policy.New(name); err != nil {
		return s, err
	}
	s.drafter, err = policy.New(name)
	return s, err
}

// Policy is the name of the policy in use.
func (c *Cache) Policy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.strategy.name
}

// SetPolicy changes the policy. What it decides takes effect within moments;
// nothing is thrown away before its room is needed.
func (c *Cache) SetPolicy(name string) error {
	s, err := newStrategy(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.pins = c.mu.strategy.pins
	c.mu.strategy, c.mu.moves = s, moves{}
	c.planning.soon()
	return nil
}

// Pin keeps all batches whose key names a plan from going below a level, as long as
// the budgets allow, even those that are read once. Level policy.Source ends the pin.
func (c *Cache) Pin(plan [16]byte, at policy.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == policy.Source {
		delete(c.mu.strategy.pins, plan)
	} else {
		c.mu.strategy.pins[plan] = at
	}
	idle, eviction := c.mu.slabs.idle, &c.mu.eviction
	for id := range idle.all() {
		if b := idle.at(id); b.key.Plan == plan && !b.packed && eviction.readOnce(&b) != idle.isSpent(id) {
			eviction.addIdle(idle.take(id))
		}
	}
	c.planning.soon()
}
