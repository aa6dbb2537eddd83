package queue

// An assignment says which of the free units which node is to do, and which are loose.
type assignment struct {
	*freeUnits
	assigned []int32 // by edge: units of its group that its node is to do
	placed   []int32 // by group: sum of assigned over its edges
	slack    []int32 // groups with more free units than placed ones
	at       []int32 // by group: its index in slack, or -1
	load     []int   // by node: sum of assigned over its edges
	spare    []int   // by node: loose units that it holds
}

// newAssignment is of units that are all loose.
func newAssignment(p *freeUnits) assignment {
	f := assignment{freeUnits: p, assigned: make([]int32, len(p.edges)), placed: make([]int32, len(p.groups)), at: make([]int32, len(p.groups))}
	f.grow()
	for g := range f.at {
		f.at[g] = -1
	}
	for _, g := range p.live {
		f.loosen(g, int(p.groups[g].free))
	}
	return f
}

// grow makes room for nodes that have come.
func (f *assignment) grow() {
	for len(f.load) < len(f.freeUnits.nodes) {
		f.load = append(f.load, 0)
		f.spare = append(f.spare, 0)
	}
}

// place assigns n more units of an edge's group to be done by its node.
func (f *assignment) place(e, n int32) {
	g := f.edges[e].group
	f.assigned[e] += n
	f.placed[g] += n
	f.load[f.edges[e].node] += int(n)
	f.loosen(g, -int(n))
}

// move assigns n units of a group to be done by the node of another edge of it.
func (f *assignment) move(from, to, n int32) {
	f.assigned[from] -= n
	f.assigned[to] += n
	f.load[f.edges[from].node] -= int(n)
	f.load[f.edges[to].node] += int(n)
}

func (f *assignment) loose(g int32) int32 {
	return f.groups[g].free - f.placed[g]
}

// loosen notes that a group has n more loose units, which it has already, and
// lists it in slack, or not, as it should be.
func (f *assignment) loosen(g int32, n int) {
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
