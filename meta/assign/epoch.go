package assign

// A Plan is an epoch of chunks, divided.
type Plan struct {
	Division
	// From is, by position, the node that the chunk is read from: the reader's
	// own if that holds it, -1 if nobody is known to.
	From []int32
	// Over is how much more than its capacity every node has to serve at most,
	// since the capacities together could not serve all that is not local.
	Over int32
}

// Epoch divides a whole epoch of chunks among the ranks. The sum over all
// chunks of 0 where the reader's node holds it, 1 where another of its rack
// does, and 2 elsewhere is the least that the shares allow. Chunk i of the
// epoch's order is held by set of[i]; strict is the epoch as assign=strict
// divides it.
//
// Chunks that are not local are served by their holders, of the reader's rack
// if there are any: node j, by its number in the cluster, serves at most
// serve[j] of them. If that cannot be, all serve Over more, the least number
// that is enough. Without serve nobody has any capacity, so Over is what the
// busiest node serves, and as little as can be.
//
// Capacity never makes a chunk be read elsewhere: a chunk more that crosses
// the network costs each node's links, a server that is busy only its own.
func (p *Planner) Epoch(strict Division, of []int32, serve []int32) (Plan, error) {
	if err := p.check(strict, of); err != nil {
		return Plan{}, err
	}
	if err := p.checkServe(serve); err != nil {
		return Plan{}, err
	}
	w := p.works.Get().(*work)
	defer p.works.Put(w)
	if err := w.gather(of, true); err != nil {
		return Plan{}, err
	}
	w.settle(strict)
	w.stay()
	w.g.greedy()
	if w.g.augment(); w.g.waiting > 0 {
		w.g.raise()
		w.stayInRack()
		w.g.augment()
	}
	w.place()
	plan := Plan{Division: w.deal(strict)}
	err := w.serve(&plan, of, serve)
	return plan, err
}
