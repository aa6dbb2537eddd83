package assign

// Sets is a table of sets of nodes: who holds what. The zero value is empty.
// Sets may be equal, may be empty, and name a node twice; that and the order
// within a set make no difference to any result.
type Sets struct {
	end   []int // where each set ends in nodes
	nodes []int32
}

// Add appends a set and returns its number.
func (s *Sets) Add(nodes ...int32) int32 {
	s.nodes = append(s.nodes, nodes...)
	s.end = append(s.end, len(s.nodes))
	return int32(len(s.end) - 1)
}

// Len is the number of sets.
func (s *Sets) Len() int { return len(s.end) }

func (s *Sets) at(set int32) []int32 {
	first := 0
	if set > 0 {
		first = s.end[set-1]
	}
	return s.nodes[first:s.end[set]]
}
