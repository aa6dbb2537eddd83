package assign

// A sweep is the flow for a number of chunks of the busiest rank that grows: all
// that can be local with so many is.
type sweep struct {
	w      *work
	quotas *finish // what each rank may read
	most   int     // the largest quota that was needed
	local  int
	chunks int

	// A search that fails has seen all that leads to its node, and found no
	// chunk that is left: these nodes are dead. They stay so. What they could
	// read is read by one of them, and no later search takes from them.
	dead    []bool
	visited []int32 // the nodes of the present search
	seen    []bool  // by node
	direct  []int32 // by node: arcs into it before this one are of groups with nothing left
}

func newSweep(w *work, of []int32) (*sweep, error) {
	if err := w.gather(of, false); err != nil {
		return nil, err
	}
	s := &sweep{w: w, chunks: len(of)}
	s.quotas, s.most = shortest(len(w.p.nodeOf), len(of))
	g := &w.g
	for rank, n := range s.quotas.given {
		g.room[w.p.nodeOf[rank]] += n
	}
	total := g.waiting
	if g.greedy() {
		g.augment()
	}
	s.local = int(total - g.waiting)
	s.dead, s.seen = make([]bool, len(g.room)), make([]bool, len(g.room))
	s.direct = append(s.direct, g.into.start[:len(g.room)]...)
	return s, nil
}

// shortest is equal shares of chunks of one size, and the largest of them.
func shortest(ranks, chunks int) (f *finish, most int) {
	given, all := make([]int32, ranks), make([]int32, ranks)
	for rank := range given {
		given[rank], all[rank] = int32(chunks/ranks), int32(rank)
		if rank < chunks%ranks {
			given[rank]++
		}
	}
	return newFinish(given, all), (chunks + ranks - 1) / ranks
}

// next raises quotas, one by one and the lowest first, until one more chunk is
// local. It returns false if none is enough for that.
func (s *sweep) next() bool {
	g := &s.w.g
	for g.waiting > 0 && len(s.quotas.ranks) > 0 {
		node := s.w.p.nodeOf[s.quotas.ranks[0].rank]
		if s.dead[node] {
			s.quotas.ranks.Pop()
			continue
		}
		quota := s.quotas.give()
		if s.pull(node) {
			g.waiting--
			s.local++
			s.most = int(quota)
			return true
		}
	}
	return false
}

// pull makes one more chunk be read at node: one that no node reads yet, or one of
// another node, which gets one instead in the same way.
func (s *sweep) pull(node int32) bool {
	found := s.search(node)
	for _, n := range s.visited {
		s.seen[n] = false
		s.dead[n] = s.dead[n] || !found
	}
	s.visited = s.visited[:0]
	return found
}

// search takes a chunk for node that no node reads yet, or has another node that reads one give
// it up and find another, in the same way: an augmenting path, depth first. No node is looked at
// twice in one pull. direct goes forward alone, as a chunk of which nothing is left stays so.
func (s *sweep) search(node int32) bool {
	g := &s.w.g
	s.seen[node] = true
	s.visited = append(s.visited, node)
	for end := g.into.start[node+1]; s.direct[node] < end; s.direct[node]++ {
		a := g.into.list[s.direct[node]]
		if x := g.from[a]; g.left[x] > 0 {
			g.left[x]--
			g.flow[a]++
			return true
		}
	}
	for _, a := range g.into.row(node) {
		x := g.from[a]
		for b := g.first[x]; b < g.first[x+1]; b++ {
			other := g.to[b]
			if g.flow[b] == 0 || s.seen[other] || s.dead[other] {
				continue
			}
			if s.search(other) {
				g.flow[b]--
				g.flow[a]++
				return true
			}
		}
	}
	return false
}

// division gives each rank its chunks: the local ones of a node to its ranks,
// the others to the ranks that have the fewest, none of which then has more than
// the sweep allows.
func (s *sweep) division() (Division, error) {
	w, g, n := s.w, &s.w.g, len(s.w.p.nodeOf)
	local := make([]int32, len(g.room))
	for a, n := range g.flow {
		local[g.to[a]] += n
	}
	given, all := make([]int32, n), make([]int32, 0, n)
	ranks := tabulate(len(local), w.p.nodeOf)
	for node, n := range local {
		newFinish(given, ranks.row(int32(node))).giveOut(int(n))
	}
	for rank := range n {
		all = append(all, int32(rank))
	}
	newFinish(given, all).giveOut(s.chunks - s.local)
	strict, err := Contiguous(given)
	if err != nil {
		return Division{}, err
	}
	fill(g.room, 0)
	w.startFrom(strict)
	for node, n := range local {
		g.room[node] -= n
	}
	w.place()
	return w.deal(strict), nil
}
