package state

// A Summary has the sizes of the state's tables.
type Summary struct {
	Cluster    Cluster
	Now        int64  // time of the cluster, nanoseconds since 1970
	Applied    uint64 // index of the last command
	Tokens     int    // with uses left
	Nodes      int
	Up         int // of the nodes
	Removed    int
	Datasets   int
	RankCounts int // numbers of ranks, of all datasets, with claims
	Plans      int
	Queues     int
	Units      uint64 // of all queues
	Workers    int    // of all queues, those that have left included
	Settings   int
}

// Summary counts the entries of the state's tables.
func (m *Machine) Summary() Summary {
	s, done := m.read()
	defer done()
	sum := Summary{
		Cluster: s.Cluster, Now: s.Now, Applied: s.Applied,
		Tokens: s.tokens().len() - s.tokens().spent, Nodes: s.nodes().len(), Removed: s.nodes().removed.len(),
		Datasets: s.datasets().len(), RankCounts: s.claims().len(), Plans: s.plans().len(),
		Queues: s.queues().len(), Units: s.queues().units, Workers: s.queues().workers, Settings: s.settings().len(),
	}
	for _, n := range s.nodes().m {
		if n.Up {
			sum.Up++
		}
	}
	return sum
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
		for _, w := range q.workers {
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
