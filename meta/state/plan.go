package state

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

// plans are pinned, by view.
type plans struct {
	table[string, *Plan]
	maps rankMaps
	pins []pin // plans in the order of their pinning, and some that are gone
}

func (s *state) plans() *plans { return part[*plans](s) }

func (*plans) commands() []command {
	return []command{
		{kind: 13, blank: blank[Pin], by: members},
		{kind: 14, blank: blank[Unpin], by: members},
	}
}

func (t *plans) share() section { return &plans{table: t.table.share()} }

func (t *plans) over() bool { return t.len() > MaxPlans || t.maps.runs > MaxRuns }

type planFrame struct {
	Plan
	Map int // which of the frames of nodes it has
}

// write writes plans in the order of their pinning, and the nodes that
// some have in common before the first of them.
func (t *plans) write(f *frameWriter) {
	numbers := make(map[*Run]int)
	plans := slices.SortedFunc(maps.Values(t.m), func(a, b *Plan) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, p := range plans {
		number, ok := numbers[&p.Nodes[0]]
		if !ok {
			number = len(numbers)
			numbers[&p.Nodes[0]] = number
			text, _ := p.Nodes.MarshalText()
			f.frame('m', text)
		}
		frame := planFrame{*p, number}
		frame.Nodes = nil
		f.json('p', frame)
	}
}

// A planReader restores plans, and the nodes that come before them.
type planReader struct {
	*restorer
	nodes  []Runs
	pinned uint64 // sequence of the last plan
}

func (*plans) restore(in *restorer) frames {
	r := &planReader{restorer: in}
	return frames{'m': r.rankMap, 'p': each(r.plan)}
}

func (in *planReader) rankMap(payload []byte) error {
	var r Runs
	if err := r.UnmarshalText(payload); err != nil {
		return err
	}
	if err := r.check(r.Ranks()); err != nil {
		return err
	}
	in.nodes = append(in.nodes, r)
	return must(len(in.nodes) <= MaxPlans && r.Ranks() <= meta.MaxRanks, errMany)
}

func (in *planReader) plan(frame planFrame) error {
	p := frame.Plan
	v, err := checkView(p.View)
	if err != nil {
		return err
	}
	d, err := in.s.current(v.Dataset, p.Generation)
	if err != nil {
		return err
	}
	_, twice := in.s.plans().get(p.View)
	if frame.Map < 0 || frame.Map >= len(in.nodes) || p.Nodes != nil || d.Index != p.Index || p.Sequence <= in.pinned {
		return errWrong
	}
	p.Nodes, in.pinned = in.nodes[frame.Map], p.Sequence
	if err := first(in.sequence(p.Sequence), must(!twice, errTwice), must(p.Nodes.Ranks() == v.Ranks, errWrong)); err != nil {
		return err
	}
	in.s.addPlan(&p)
	return nil
}

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
	if p, ok := s.plans().get(c.View); ok {
		return Result{Plan: p.copy()}, nil
	}
	if err := s.knowsAll(c.Nodes); err != nil {
		return Result{}, err
	}
	p := &Plan{View: c.View, Generation: d.Generation, Index: d.Index, Nodes: c.Nodes, Sequence: s.next(), Pinned: s.Now}
	s.addPlan(p)
	for s.plans().over() {
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
		if _, ok := s.nodes().removed.get(run.Node); ok {
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
	p.Nodes = s.plans().maps.take(p.Nodes)
	s.plans().set(p.View, p)
	s.plans().pins = append(s.plans().pins, pin{p.View, p.Sequence})
}

func (s *state) dropPlan(p *Plan) {
	s.plans().drop(p.View)
	s.plans().maps.release(p.Nodes)
	if len(s.plans().pins) > 2*s.plans().len()+16 {
		s.tidyPins()
	}
}

func (s *state) isPinned(p pin) bool {
	plan, ok := s.plans().get(p.view)
	return ok && plan.Sequence == p.sequence
}

// tidyPins leaves out pins of plans that are gone.
func (s *state) tidyPins() {
	var live []pin
	for _, p := range s.plans().pins {
		if s.isPinned(p) {
			live = append(live, p)
		}
	}
	s.plans().pins = live
}

func (s *state) dropOldestPlan() {
	for !s.isPinned(s.plans().pins[0]) {
		s.plans().pins = s.plans().pins[1:]
	}
	s.Evicted = s.plans().pins[0].sequence
	s.dropPlan(s.plans().m[s.plans().pins[0].view])
}

func (s *state) dropPlans(dataset string) {
	for view, p := range s.plans().m {
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

func (c *Unpin) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *Unpin) apply(s *state) (Result, error) {
	if p, ok := s.plans().get(c.View); ok {
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
