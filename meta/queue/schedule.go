package queue

import "time"

// rounds bounds how often one schedule corrects itself. Where 128 nodes drift, 1, 4
// and 16 rounds end 16.4, 15.9 and 15.1 per cent above ideal; few schedules but the
// last ones use more than one.
const rounds = 16

// schedule divides the free units anew. Quotas first suppose that a node can have
// all that it holds. Where the flow says that others must have some of it, they
// are reckoned again: what is left of such a quota takes longer.
func (f *flow) schedule(now time.Duration) {
	f.bid(now)
	for range rounds {
		share(f.bids, f.free)
		f.match()
		if !f.correctBids() {
			break
		}
	}
	f.made++
	f.when, f.asked, f.due = now, 0, false
}

// bid makes a bid for each reader that is present.
func (f *flow) bid(now time.Duration) {
	readers := make([]float64, len(f.freeUnits.nodes))
	f.bids = f.bids[:0]
	for _, w := range f.byID {
		w.quota, w.fresh = 0, false
		if f.present(now, w) {
			near := f.near(w)
			f.bids = append(f.bids, bid{reader: w, from: float64(f.idle(now, w)), near: near, far: near + f.further()})
			readers[w.node]++
		}
	}
	for i := range f.bids {
		b := &f.bids[i]
		b.mates = readers[b.node]
		b.local = float64(f.freeUnits.nodes[b.node].here) / b.mates
	}
}

// match makes the flow a maximal one for the quotas.
func (f *flow) match() {
	clear(f.limit)
	for _, b := range f.bids {
		f.limit[b.node] += b.quota
	}
	if f.made == 0 {
		f.spread()
	}
	for k := range f.limit {
		f.release(k)
	}
	f.search.begin(len(f.limit))
	for k := range f.limit {
		for f.load[k] < f.limit[k] && f.load[k] < f.freeUnits.nodes[k].here && f.reach(int32(k)) {
		}
	}
}

// correctBids corrects bids that supposed more units on their node than the flow
// found, and says whether there were any.
func (f *flow) correctBids() bool {
	wrong := false
	for i := range f.bids {
		b := &f.bids[i]
		got := float64(f.load[b.node]) / b.mates
		if f.load[b.node] < f.limit[b.node] && got < b.local {
			b.local, wrong = got, true
		}
	}
	return wrong
}

// spread is a good first schedule, quickly made: each group goes to the one of its
// holders that has the most room.
func (f *flow) spread() {
	for i := len(f.slack) - 1; i >= 0; i-- {
		g := f.slack[i]
		for e := f.roomiest(g); e >= 0 && f.loose(g) > 0; e = f.roomiest(g) {
			f.place(e, min(f.loose(g), int32(f.room(e))))
		}
	}
}

func (f *flow) room(e int32) int {
	k := f.edges[e].node
	return f.limit[k] - f.load[k]
}

// roomiest is the edge of a group to the node with the most room, or -1.
func (f *flow) roomiest(g int32) int32 {
	best, most := int32(-1), 0
	for e := f.groups[g].edge; e < f.groups[g+1].edge; e++ {
		if room := f.room(e); room > most {
			best, most = e, room
		}
	}
	return best
}

// release takes from a node what is above its limit: first what another of its
// holders has room for, then anything.
func (f *flow) release(k int) {
	live := f.freeUnits.nodes[k].live
	for i := 0; i < len(live) && f.load[k] > f.limit[k]; i++ {
		g := f.edges[live[i]].group
		if f.assigned[live[i]] == 0 {
			continue
		}
		if to := f.roomiest(g); to >= 0 {
			n := min(f.assigned[live[i]], int32(f.room(to)), int32(f.load[k]-f.limit[k]))
			f.move(live[i], to, n)
		}
	}
	for i := 0; i < len(live) && f.load[k] > f.limit[k]; i++ {
		if n := min(f.assigned[live[i]], int32(f.load[k]-f.limit[k])); n > 0 {
			f.place(live[i], -n)
		}
	}
}

// reach assigns more units to node k, along one shortest path.
func (f *flow) reach(k int32) bool {
	s := &f.search
	s.start(k)
	end := k
	for i := 0; i < len(s.queue) && f.spare[end] == 0; i++ {
		end = f.look(s.queue[i])
	}
	if f.spare[end] > 0 {
		f.augment(end, k)
		return true
	}
	for _, j := range s.queue {
		s.dead[j] = true
	}
	return false
}

// look visits the nodes for which units are assigned that j holds as well, up to
// one that holds loose ones. It returns the last.
func (f *flow) look(j int32) int32 {
	s := &f.search
	for _, e := range f.freeUnits.nodes[j].live {
		g := f.edges[e].group
		for o := f.groups[g].edge; o < f.groups[g+1].edge; o++ {
			other := f.edges[o].node
			if f.assigned[o] == 0 || !s.fresh(other) {
				continue
			}
			s.visit(other, hop{o, e})
			if f.spare[other] > 0 {
				return other
			}
		}
	}
	return j
}

// augment gives loose units that node j holds to j, so many of j's to the node
// from which the search came to j, and so on to k.
func (f *flow) augment(j, k int32) {
	e := f.someLoose(j)
	n := min(f.loose(f.edges[e].group), int32(f.limit[k]-f.load[k]))
	via := f.search.via
	for at := j; at != k; at = f.edges[via[at].to].node {
		n = min(n, f.assigned[via[at].from])
	}
	f.place(e, n)
	for at := j; at != k; at = f.edges[via[at].to].node {
		f.move(via[at].from, via[at].to, n)
	}
}

// someLoose is an edge to j of a group that has loose units. It looks where
// release does first: from the back it took five times as long, for a million.
func (f *flow) someLoose(j int32) int32 {
	live := f.freeUnits.nodes[j].live
	i := 0
	for f.loose(f.edges[live[i]].group) == 0 {
		i++
	}
	return live[i]
}
