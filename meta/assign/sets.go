package assign

// Sets is a table of sets of nodes: who holds what. The zero value is empty.
// Sets may be equal, may be empty, and name a node twice; that and the order
// within a set make no difference to any result.
type Sets struct{ lists lists }

// Add appends a set and returns its number.
func (s *Sets) Add(nodes ...int32) int32 { return s.lists.add(nodes) }

// Number returns the number of the set of these nodes in this order, and adds it
// if there is none. Many chunks with few sets so take little memory.
func (s *Sets) Number(nodes []int32) (int32, error) { return s.lists.number(nodes) }

// Len is the number of sets.
func (s *Sets) Len() int { return len(s.lists.end) }

// At returns a set. The caller must not change it.
func (s *Sets) At(set int32) []int32 { return s.lists.at(set) }
