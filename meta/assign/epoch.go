package assign

// Epoch divides a whole epoch of chunks, or a stretch of one, among the ranks.
// The sum over all chunks of 0 where the reader's node holds it, 1 where another
// of its rack does, and 2 elsewhere is the least that the shares allow. Chunk i
// of the order is held by set of[i]; strict is the same as assign=strict divides
// it. Without racks the result is that of Step.
func (p *Planner) Epoch(strict Division, of []int32) (Division, error) {
	if err := p.check(strict, of); err != nil {
		return Division{}, err
	}
	w := p.work()
	defer p.works.Put(w)
	if err := w.gather(of, true); err != nil {
		return Division{}, err
	}
	w.startFrom(strict)
	w.stay()
	w.g.greedy()
	if w.g.augment(); w.g.waiting > 0 {
		w.g.raise()
		w.stayInRack()
		w.g.augment()
	}
	w.place()
	return w.deal(strict), nil
}
