package queue

// place assigns n more units of an edge's group to be done by its node.
func (f *flow) place(e, n int32) {
	g := f.edges[e].group
	f.assigned[e] += n
	f.placed[g] += n
	f.load[f.edges[e].node] += int(n)
	f.loosen(g, -int(n))
}

// move assigns n units of a group to be done by the node of another edge of it.
func (f *flow) move(from, to, n int32) {
	f.assigned[from] -= n
	f.assigned[to] += n
	f.load[f.edges[from].node] -= int(n)
	f.load[f.edges[to].node] += int(n)
}

func (f *flow) loose(g int32) int32 {
	return f.groups[g].free - f.placed[g]
}

// loosen notes that a group has n more loose units, which it has already, and
// lists it in slack, or not, as it should be.
func (f *flow) loosen(g int32, n int) {
	for _, e := range f.of(g) {
		f.spare[e.node] += n
	}
	i := f.at[g]
	switch loose := f.loose(g) > 0; {
	case loose && i < 0:
		f.at[g] = int32(len(f.slack))
		f.slack = append(f.slack, g)
	case !loose && i >= 0:
		last := f.slack[len(f.slack)-1]
		f.slack[i], f.at[last], f.at[g] = last, i, -1
		f.slack = f.slack[:len(f.slack)-1]
	}
}
