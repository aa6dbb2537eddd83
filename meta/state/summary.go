package state

// A Summary is what a machine has come to.
type Summary struct {
	Cluster Cluster
	Applied uint64 // index of the last command
	Plans   int    // that are settled
}

// Summary says what the machine has come to.
func (m *Machine) Summary() Summary {
	s, done := m.read()
	defer done()
	return Summary{Cluster: s.Cluster, Applied: s.Applied, Plans: s.plans().len()}
}

// A Hold counts the ranks that a node claims, and its units of queues.
type Hold struct {
	Ranks uint64
	Units int
	Since int64 // time of the cluster when it took the unit that it has had for longest
}

// Holds has the Hold of each node that holds anything, by id.
func (m *Machine) Holds() map[string]Hold {
	s, done := m.read()
	defer done()
	claimed := make(map[uint64]uint64)
	for _, j := range s.claims().m {
		for _, node := range j.node {
			claimed[node]++
		}
	}
	delete(claimed, 0) // ranks that were opened on no node
	all := make(map[string]Hold)
	for node, ranks := range claimed {
		all[idString(node)] = Hold{Ranks: ranks}
	}
	for _, q := range s.queues().m {
		for _, w := range q.readers {
			if w.Unit < 0 {
				continue
			}
			h := all[w.Node]
			if h.Units++; h.Units == 1 || w.Since < h.Since {
				h.Since = w.Since
			}
			all[w.Node] = h
		}
	}
	return all
}
