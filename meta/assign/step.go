package assign

// Step divides one step among the ranks so that as many of its positions as
// possible are read on a node that holds them: no division into the same
// shares has more. Position i is held by set of[i]; strict is the step as
// assign=strict divides it. A strict division that is as local as any is the
// result.
func (p *Planner) Step(strict Division, of []int32) (Division, error) {
	if err := p.check(strict, of); err != nil {
		return Division{}, err
	}
	w := p.work()
	defer p.works.Put(w)
	if err := w.gather(of, false); err != nil {
		return Division{}, err
	}
	w.startFrom(strict)
	w.stay()
	if w.g.greedy() {
		w.g.augment()
	}
	w.place()
	return w.deal(strict), nil
}
