package assign

// A work is the memory that one division needs besides its result.
type work struct {
	p *Planner
	g graph

	local  []int32 // by kind: its group in this division, or -1
	group  []int32 // by position
	reader []int32 // by position: the rank that reads it under assign=strict
	strict []int32 // by position: the node of that rank
	at     []int32 // by position: the node that reads it, or -1
	kinds  []int32 // by group
	counts []int32 // by group: its positions

	next, taken, filled, ranks []int32 // of deal
}

// work is memory for a division, which goes back to works after it.
func (p *Planner) work() *work {
	if w, ok := p.works.Get().(*work); ok {
		return w
	}
	return &work{p: p, local: filled(p.kinds.Len(), -1)}
}

// gather makes groups of the positions, numbered as they come first, and a
// graph of those without any room. Racks count as targets if asked for.
func (w *work) gather(of []int32, racks bool) error {
	p := w.p
	w.group = sized(w.group, len(of))
	w.kinds, w.counts = w.kinds[:0], w.counts[:0]
	for position, set := range of {
		k := p.kindOf[set]
		if w.local[k] < 0 {
			w.local[k] = int32(len(w.kinds))
			w.kinds, w.counts = append(w.kinds, k), append(w.counts, 0)
		}
		w.group[position] = w.local[k]
		w.counts[w.local[k]]++
	}
	for _, k := range w.kinds {
		w.local[k] = -1
	}
	return w.link(racks)
}

func (w *work) link(racks bool) error {
	p, targets, known := w.p, w.p.kinds.hosts, table{}
	if racks {
		targets, known = p.kinds.At, p.racks
	}
	arcs := 0
	for _, k := range w.kinds {
		arcs += len(targets(k))
	}
	if err := w.g.reset(len(w.kinds), arcs, len(p.outer), known); err != nil {
		return err
	}
	w.g.rackOf = p.rackOf
	for x, k := range w.kinds {
		w.g.addGroup(w.counts[x], targets(k))
	}
	w.g.ready()
	return nil
}

// startFrom gives each node room for its ranks' shares of a division, and notes
// where each position would be read.
func (w *work) startFrom(d Division) {
	w.reader, w.strict = sized(w.reader, d.Len()), sized(w.strict, d.Len())
	for rank, node := range w.p.nodeOf {
		for _, position := range d.Of(rank) {
			w.reader[position], w.strict[position] = int32(rank), node
		}
		w.g.room[node] += d.start[rank+1] - d.start[rank]
	}
}

// stay lets positions be read where assign=strict has them read, if that is
// on a holder.
func (w *work) stay() {
	for position, x := range w.group {
		if a := w.g.arc(x, w.strict[position]); a >= 0 {
			w.g.send(a, 1)
		}
	}
}

// stayInRack does the same with positions that are left after raise: each is
// as well placed in the rack of a holder. Only nodes of the low price have room.
func (w *work) stayInRack() {
	g := &w.g
	for position, x := range w.group {
		strict := w.strict[position]
		if g.left[x] == 0 || g.room[strict] == 0 || g.rackOf[strict] < 0 {
			continue
		}
		if a := g.arc(x, g.nodes+g.rackOf[strict]); a >= 0 {
			g.flow[a]++
			g.left[x]--
			g.waiting--
			g.room[strict]--
			g.viaRack[strict]++
		}
	}
}
