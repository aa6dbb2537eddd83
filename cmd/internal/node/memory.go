package node

import (
	"context"
	"fmt"

	"rankfs/cache"
	"rankfs/cache/pressure"
	"rankfs/cmd/internal/control"
)

// A memory says how much of its budget the cache may have now: all of it where that
// cannot be watched.
type memory struct {
	budget  int64
	watcher *pressure.Watcher
	fault   error // why it is not watched
}

// watchMemory has the cache be smaller than its budget while memory is short.
func watchMemory(c Config, k *cache.Cache) memory {
	w, err := pressure.New(pressure.Config{
		Budget: c.RAMBytes, Held: k.Held, Log: c.Log,
		Changed: func(a pressure.Allowance, _ pressure.Sample) { k.Allow(a.Bytes, a.Ahead) },
	})
	if err != nil {
		c.Log.Warn("memory is not watched: the cache may use all of its budget", "cause", err)
		return memory{budget: c.RAMBytes, fault: err}
	}
	if a, _, _ := w.Allowance(); a.Bytes < c.RAMBytes || !a.Ahead {
		k.Allow(a.Bytes, a.Ahead)
	}
	return memory{budget: c.RAMBytes, watcher: w}
}

func (m memory) follow(ctx context.Context) {
	if m.watcher != nil {
		m.watcher.Run(ctx)
	}
}

// tier is the tier of memory: with its whole budget, and how much of that is allowed
// now, if it is less, and not only as jobs of the pool have the rest.
func (m memory) tier(t cache.TierStats) control.Tier {
	c := control.Tier{
		Name: "ram", Where: "private tmpfs", Budget: m.budget, Used: t.Used, Dying: t.Dying, Slabs: t.Slabs, State: "ok",
	}
	if m.watcher == nil {
		c.State = fmt.Sprintf("not watched: %v", m.fault)
		return c
	}
	a, s, fault := m.watcher.Allowance()
	switch {
	case fault != nil:
		c.State = fmt.Sprintf("not watched: %v", fault)
	case a.Bytes < m.budget && a.Bytes <= t.Budget:
		c.State = fmt.Sprintf("%d MiB allowed: memory is short: %v", t.Budget>>20, s)
	}
	return c
}
