package queue

// A search is a breadth-first one for a node's augmenting path: from the node
// to the groups that it holds, from there to the nodes that have some of these,
// and so on until a node holds loose units.
type search struct {
	queue []int32 // nodes
	seen  []int32 // by node: the number of the last search that came by
	via   []hop   // by node: how it came there
	id    int32
	dead  []bool // by node: a search came by and found nothing, so none will for this flow
}

// A hop is a unit that one node could give to another.
type hop struct {
	from, to int32 // edges of one group
}

func (s *search) begin(nodes int) {
	if len(s.seen) < nodes {
		s.seen, s.via, s.dead = make([]int32, nodes), make([]hop, nodes), make([]bool, nodes)
	}
	clear(s.dead)
}

func (s *search) start(k int32) {
	s.id++
	s.queue = s.queue[:0]
	s.visit(k, hop{-1, -1})
}

func (s *search) visit(k int32, by hop) {
	s.queue = append(s.queue, k)
	s.seen[k], s.via[k] = s.id, by
}

func (s *search) fresh(k int32) bool {
	return s.seen[k] != s.id && !s.dead[k]
}
