package assign

// place turns the flow, which counts, into a node for each position. A
// position stays on its node of assign=strict if the flow lets one of its group; the others
// go in ascending order to holders, then to racks of holders, then to where
// room is left, nodes ascending, so that runs stay together.
func (w *work) place() {
	w.at = fill(sized(w.at, len(w.group)), -1)
	w.placeAsStrict()
	w.placeByFlow()
	w.placeRest()
}

func (w *work) placeAsStrict() {
	g := &w.g
	for position, x := range w.group {
		strict := w.strict[position]
		if a := g.arc(x, strict); a >= 0 && g.flow[a] > 0 {
			g.flow[a]--
			w.at[position] = strict
		} else if g.viaRack[strict] > 0 {
			if a := g.arc(x, g.nodes+g.rackOf[strict]); a >= 0 && g.flow[a] > 0 {
				g.flow[a]--
				g.viaRack[strict]--
				w.at[position] = strict
			}
		}
	}
}

// placeByFlow uses up the flow. What goes to a rack is any of its nodes' that
// take from it: none of those is a host of the position, since the price of
// its hosts is high.
func (w *work) placeByFlow() {
	g := &w.g
	copy(g.groupNext, g.first)
	copy(g.rackNext, g.racks.start)
	for position, x := range w.group {
		if w.at[position] >= 0 {
			continue
		}
		a, end := g.groupNext[x], g.first[x+1]
		for a < end && g.flow[a] == 0 {
			a++
		}
		if g.groupNext[x] = a; a == end {
			continue
		}
		g.flow[a]--
		if w.at[position] = g.to[a]; g.to[a] >= g.nodes {
			w.at[position] = g.passOn(g.to[a] - g.nodes)
		}
	}
}

// passOn returns the next node of a rack that takes a position from it.
func (g *graph) passOn(rack int32) int32 {
	for g.viaRack[g.racks.list[g.rackNext[rack]]] == 0 {
		g.rackNext[rack]++
	}
	node := g.racks.list[g.rackNext[rack]]
	g.viaRack[node]--
	return node
}

// placeRest places what is remote everywhere.
func (w *work) placeRest() {
	room := w.g.room
	for position, node := range w.at {
		if strict := w.strict[position]; node < 0 && room[strict] > 0 {
			room[strict]--
			w.at[position] = strict
		}
	}
	next := 0
	for position, node := range w.at {
		if node >= 0 {
			continue
		}
		for room[next] == 0 {
			next++
		}
		room[next]--
		w.at[position] = int32(next)
	}
}

// deal divides what each node reads among its ranks, as assign=strict does: the
// i-th position that the node reads goes to the rank that has the i-th of the
// node's there. So ranks keep their shares; a step falls into a run for each
// rank of a node, an epoch of chunks to them in turn.
func (w *work) deal(strict Division) Division {
	d := Division{start: strict.start, list: make([]int32, len(w.at))}
	w.next = fill(sized(w.next, len(w.p.outer)+1), 0)
	for _, node := range w.at {
		w.next[node+1]++
	}
	for node := range w.p.outer {
		w.next[node+1] += w.next[node]
	}
	w.ranks = sized(w.ranks, len(w.at))
	w.taken = append(w.taken[:0], w.next...)
	for position, node := range w.strict {
		w.ranks[w.taken[node]] = w.reader[position]
		w.taken[node]++
	}
	w.filled = append(w.filled[:0], strict.start...)
	for position, node := range w.at {
		rank := w.ranks[w.next[node]]
		w.next[node]++
		d.list[w.filled[rank]] = int32(position)
		w.filled[rank]++
	}
	return d
}
