package state

import (
	"cmp"
	"maps"
	"slices"

	"rankfs/meta"
)

const (
	MaxPlans = 1 << 16
	MaxRuns  = 1 << 21 // runs of all rank maps that differ: 48 MiB
)

// plans are the plans that are settled, by view.
type plans struct {
	table[string, *SettledPlan]
	maps  rankMaps
	order []planRef // that of plans, with some that are gone
}

func (s *state) plans() *plans { return sectionOf[*plans](s) }

func (*plans) commands() []command {
	return []command{
		{kind: 13, blank: blank[Settle], by: members},
		{kind: 14, blank: blank[Unsettle], by: members},
	}
}

func (t *plans) share() sharer { return &plans{table: t.table.share()} }

func (t *plans) over() bool { return t.len() > MaxPlans || t.maps.runs > MaxRuns }

type planFrame struct {
	SettledPlan
	Map int // which of the frames of nodes it has
}

// write writes plans in the order in which they were settled, and the nodes that
// some have in common before the first of them.
func (t *plans) write(f *frameWriter) {
	numbers := make(map[*Run]int)
	plans := slices.SortedFunc(maps.Values(t.m), func(a, b *SettledPlan) int { return cmp.Compare(a.Sequence, b.Sequence) })
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

// A planRestorer restores plans, and the nodes that come before them.
type planRestorer struct {
	*restorer
	nodes   []Runs
	settled uint64 // sequence of the last plan
}

func (*plans) restore(in *restorer) frames {
	r := &planRestorer{restorer: in}
	return frames{'m': r.rankMap, 'p': each(r.plan)}
}

func (in *planRestorer) rankMap(payload []byte) error {
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

func (in *planRestorer) plan(frame planFrame) error {
	p := frame.SettledPlan
	v, err := checkView(p.View)
	if err != nil {
		return err
	}
	d, err := in.s.datasets().at(v.Dataset, p.Generation)
	if err != nil {
		return err
	}
	_, twice := in.s.plans().get(p.View)
	if frame.Map < 0 || frame.Map >= len(in.nodes) || p.Nodes != nil || d.Index != p.Index || p.Sequence <= in.settled {
		return errWrong
	}
	p.Nodes, in.settled = in.nodes[frame.Map], p.Sequence
	if err := first(in.sequence(p.Sequence), must(!twice, errTwice), must(p.Nodes.Ranks() == v.Ranks, errWrong)); err != nil {
		return err
	}
	in.s.plans().add(&p)
	return nil
}

// Settle settles the plan of a view. The first wins: the result is the plan that is settled.
// The oldest plans go when there are too many, or their nodes take too much
// room: a view that is opened again then gets another plan.
type Settle struct {
	Entry
	View       string
	Generation uint64
	Nodes      Runs
}

func (c *Settle) check() error {
	v, err := checkView(c.View)
	if err != nil {
		return err
	}
	return c.Nodes.check(v.Ranks)
}

// planResult is what a Settle came to.
type planResult struct{ Plan *SettledPlan }

// Plan is the plan that is settled now, of Settle.
func (r Result) Plan() *SettledPlan { return came[planResult](r).Plan }

func (c *Settle) comesTo(r Result) bool { return r.Plan() != nil }

func (c *Settle) apply(s *state) (Result, error) {
	dataset, _, _ := meta.SplitView(c.View)
	d, err := s.datasets().at(dataset, c.Generation)
	if err != nil {
		return Result{}, err
	}
	if p, ok := s.plans().get(c.View); ok {
		return Result{planResult{p.copy()}}, nil
	}
	if err := s.nodes().knowsAll(c.Nodes); err != nil {
		return Result{}, err
	}
	p := &SettledPlan{View: c.View, Generation: d.Generation, Index: d.Index, Nodes: c.Nodes, Sequence: s.next(), Settled: s.Now}
	s.plans().add(p)
	for s.plans().over() {
		s.Evicted = s.plans().removeOldest()
	}
	s.changed.cluster = true
	return Result{planResult{p.copy()}}, nil
}

// A planRef is a plan by its view and its number: the view may have a later plan by now, or
// none.
type planRef struct {
	view     string
	sequence uint64
}

// add enters a plan that is later than all others. Its nodes become those
// of an equal plan, if there is one.
func (t *plans) add(p *SettledPlan) {
	p.Nodes = t.maps.take(p.Nodes)
	t.set(p.View, p)
	t.order = append(t.order, planRef{p.View, p.Sequence})
}

func (t *plans) remove(p *SettledPlan) {
	t.drop(p.View)
	t.maps.release(p.Nodes)
	if len(t.order) > 2*t.len()+16 {
		t.tidy()
	}
}

func (t *plans) stands(p planRef) bool {
	plan, ok := t.get(p.view)
	return ok && plan.Sequence == p.sequence
}

// tidy leaves out plans that are gone.
func (t *plans) tidy() {
	var live []planRef
	for _, p := range t.order {
		if t.stands(p) {
			live = append(live, p)
		}
	}
	t.order = live
}

// removeOldest returns the sequence of the plan that it removes.
func (t *plans) removeOldest() (sequence uint64) {
	for !t.stands(t.order[0]) {
		t.order = t.order[1:]
	}
	oldest := t.order[0]
	t.remove(t.m[oldest.view])
	return oldest.sequence
}

func (t *plans) datasetGone(_ *state, d *Dataset) {
	for view, p := range t.m {
		if name, _, _ := meta.SplitView(view); name == d.Name {
			t.remove(p)
		}
	}
}

// Unsettle forgets a plan. One that is not there is forgotten.
type Unsettle struct {
	Entry
	View string
}

func (c *Unsettle) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *Unsettle) apply(s *state) (Result, error) {
	if p, ok := s.plans().get(c.View); ok {
		s.plans().remove(p)
		s.changed.cluster = true
	}
	return Result{}, nil
}

// SettledPlan is the settled plan of a view.
func (m *Machine) SettledPlan(view string) (SettledPlan, bool) {
	s, done := m.read()
	defer done()
	p, ok := s.plans().get(view)
	if !ok {
		return SettledPlan{}, false
	}
	return *p, true
}

// Overtaken reports whether a plan, of that sequence, of a view was unsettled, or
// another one was settled. One that was dropped for room, and no other settled,
// stands where it is known.
func (m *Machine) Overtaken(view string, sequence uint64) bool {
	s, done := m.read()
	defer done()
	if p, ok := s.plans().get(view); ok {
		return p.Sequence != sequence
	}
	return sequence > s.Evicted
}

// SettledPlans are all that are settled, the latest last.
func (m *Machine) SettledPlans() []SettledPlan {
	s, done := m.read()
	defer done()
	all := make([]SettledPlan, 0, s.plans().len())
	for _, p := range s.plans().m {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b SettledPlan) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}
