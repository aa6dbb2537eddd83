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
	c.mu.strategy = s
	c.mu.moves.renew(nil)
	c.choosing.soon()
	return nil
}

// Pin keeps all batches whose key names a series from going below a level, as long as
// the budgets allow, even those that are read once. Level policy.Source ends the pin. Once
// it returns, what is here of the series is worth what the pin makes of it.
func (c *Cache) Pin(series [16]byte, at policy.Level) {
	c.mu.pin(series, at)
	c.mu.walk(func(id uint32) bool {
		if b := c.mu.slabs.idle.at(id); b.key.Series == series {
			c.mu.slabs.idle.rank(id, c.mu.eviction.place(&b, time.Now()))
		}
		return true
	})
	c.choosing.soon()
}

func (g *guarded) pin(series [16]byte, at policy.Level) {
	g.Lock()
	defer g.Unlock()
	if at == policy.Source {
		delete(g.strategy.pins, series)
	} else {
		g.strategy.pins[series] = at
	}
}
