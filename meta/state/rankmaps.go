package state

import (
	"crypto/sha256"
	"fmt"
)

// rankMaps keeps the nodes of plans, equal ones once: all epochs of a job
// have the same.
type rankMaps struct {
	all  map[[32]byte]*rankMap
	runs int // of all
}

type rankMap struct {
	runs  Runs
	plans int // that have it
}

func (r Runs) hash() [32]byte {
	text, _ := r.MarshalText()
	return sha256.Sum256(text)
}

func (m *rankMaps) take(r Runs) Runs {
	h := r.hash()
	known, ok := m.all[h]
	if !ok {
		if m.all == nil {
			m.all = make(map[[32]byte]*rankMap)
		}
		known = &rankMap{runs: r}
		m.all[h] = known
		m.runs += len(r)
	}
	known.plans++
	return known.runs
}

func (m *rankMaps) release(r Runs) {
	h := r.hash()
	known := m.all[h]
	if known == nil {
		panic(fmt.Sprintf("state: release of %d runs that no plan has", len(r)))
	}
	if known.plans--; known.plans == 0 {
		delete(m.all, h)
		m.runs -= len(r)
	}
}
