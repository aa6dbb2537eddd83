package cache

import (
	"time"

	"rankfs/cache/policy"
)

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
	c.choosing.soon()
	return nil
}

// Pin keeps all batches whose key names a series from going below a level, as long as
// the budgets allow, even those that are read once. Level policy.Source ends the pin.
func (c *Cache) Pin(series [16]byte, at policy.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == policy.Source {
		delete(c.mu.strategy.pins, series)
	} else {
		c.mu.strategy.pins[series] = at
	}
	idle, eviction, now := c.mu.slabs.idle, &c.mu.eviction, time.Now()
	for id := range idle.all() {
		if b := idle.at(id); b.key.Series == series && b.series.Once() {
			idle.rank(id, eviction.place(&b, now))
		}
	}
	c.choosing.soon()
}
