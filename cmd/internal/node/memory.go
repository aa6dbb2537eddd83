package node

import (
	"context"

	"rankfs/cache"
	"rankfs/cache/pressure"
	"rankfs/cmd/internal/kept"
)

// watchMemory has the cache be smaller than its budget while memory is short, as long as watch
// goes on: all of it where that cannot be watched.
func watchMemory(c Config, k *cache.Cache) (m kept.Memory, watch func(context.Context)) {
	w, err := pressure.New(pressure.Config{
		Budget: c.RAMBytes, Held: k.Held, Log: c.Log,
		Changed: func(a pressure.Allowance, _ pressure.Sample) { k.Allow(a.Bytes, a.Ahead) },
	})
	if err != nil {
		c.Log.Warn("memory is not watched: the cache may use all of its budget", "cause", err)
		return unwatched{c.RAMBytes, err}, func(context.Context) {}
	}
	if a, _, _ := w.Allowance(); a.Bytes < c.RAMBytes || !a.Ahead {
		k.Allow(a.Bytes, a.Ahead)
	}
	return w, w.Run
}

// unwatched memory is all there for the cache, as far as it is known.
type unwatched struct {
	budget int64
	fault  error
}

// Allowance implements kept.Memory.
func (u unwatched) Allowance() (pressure.Allowance, pressure.Sample, error) {
	return pressure.Allowance{Bytes: u.budget, Ahead: true}, pressure.Sample{}, u.fault
}
