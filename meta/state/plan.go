package state

import (
	"crypto/sha256"
	"fmt"

	"rankfs/meta"
)

// A Plan is what the assignment of a view is computed from, the same on every
// node: the dataset's index, and where the ranks are. The rest is in the view.
type Plan struct {
	View       string
	Generation uint64 // of the dataset
	Index      string // hash of its index file
	Nodes      Runs   `json:",omitempty"`
	Sequence   uint64 // of its pinning: later plans have larger numbers
	Pinned     int64  // time of the cluster
}

// Pin pins the plan of a view. The first wins: the result is what is pinned.
// The oldest plans go when there are too many, or their nodes take too much
// room: a view that is opened again then gets another plan.
type Pin struct {
	Entry
	View       string
	Generation uint64
	Nodes      Runs
}

func (*Pin) kind() kind { return kindPin }

func (c *Pin) check() error {
	v, err := checkView(c.View)
	if err != nil {
		return err
	}
	return c.Nodes.check(v.Ranks)
}

func (c *Pin) apply(s *state) (Result, error) {
	dataset, _, _ := meta.SplitView(c.View)
	d, err := s.current(dataset, c.Generation)
	if err != nil {
		return Result{}, err
	}
	if p, ok := s.plans.get(c.View); ok {
		return Result{Plan: p.copy()}, nil
	}
	if err := s.knowsAll(c.Nodes); err != nil {
		return Result{}, err
	}
	p := &Plan{View: c.View, Generation: d.Generation, Index: d.Index, Nodes: c.Nodes, Sequence: s.next(), Pinned: s.Now}
	s.addPlan(p)
	for s.plans.len() > MaxPlans || s.maps.runs > MaxRuns {
		s.dropOldestPlan()
	}
	s.changed.cluster = true
	return Result{Plan: p.copy()}, nil
}

func (p *Plan) copy() *Plan {
	c := *p
	return &c
}

// knowsAll refuses nodes that were never admitted.
func (s *state) knowsAll(nodes Runs) error {
	for _, run := range nodes {
		if _, ok := s.removed.get(run.Node); ok {
			continue
		}
		if _, err := s.member(run.Node); err != nil {
			return err
		}
	}
	return nil
}

// A pin is a plan's place in the order of pinning.
type pin struct {
	view     string
	sequence uint64
}

// addPlan enters a plan that is later than all others. Its nodes become those
// of an equal plan, if there is one.
func (s *state) addPlan(p *Plan) {
	p.Nodes = s.maps.take(p.Nodes)
	s.plans.set(p.View, p)
	s.pins = append(s.pins, pin{p.View, p.Sequence})
}

func (s *state) dropPlan(p *Plan) {
	s.plans.drop(p.View)
	s.maps.release(p.Nodes)
	if len(s.pins) > 2*s.plans.len()+16 {
		s.tidyPins()
	}
}

func (s *state) isPinned(p pin) bool {
	plan, ok := s.plans.get(p.view)
	return ok && plan.Sequence == p.sequence
}

// tidyPins leaves out pins of plans that are gone.
func (s *state) tidyPins() {
	var live []pin
	for _, p := range s.pins {
		if s.isPinned(p) {
			live = append(live, p)
		}
	}
	s.pins = live
}

func (s *state) dropOldestPlan() {
	for !s.isPinned(s.pins[0]) {
		s.pins = s.pins[1:]
	}
	s.Evicted = s.pins[0].sequence
	s.dropPlan(s.plans.m[s.pins[0].view])
}

func (s *state) dropPlans(dataset string) {
	for view, p := range s.plans.m {
		if name, _, _ := meta.SplitView(view); name == dataset {
			s.dropPlan(p)
		}
	}
}

// Unpin forgets a plan. One that is not there is forgotten.
type Unpin struct {
	Entry
	View string
}

func (*Unpin) kind() kind { return kindUnpin }

func (c *Unpin) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *Unpin) apply(s *state) (Result, error) {
	if p, ok := s.plans.get(c.View); ok {
		s.dropPlan(p)
		s.changed.cluster = true
	}
	return Result{}, nil
}

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
