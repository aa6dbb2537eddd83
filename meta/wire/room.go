package wire

import "sync"

// A room bounds what other nodes hold here whether or not their turn has come:
// connections, and in memory the runs of their requests. The lock guards the counts;
// nothing waits for room, as what does not fit is refused.
type room struct {
	limits *Limits

	mu struct {
		sync.Mutex
		runs  int
		conns map[string]int // of each node that has one
	}
}

func newRoom(l *Limits) *room {
	r := &room{limits: l}
	r.mu.conns = make(map[string]int)
	return r
}

// connect counts a connection of a node.
func (r *room) connect(node string) (done func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.conns[node] >= r.limits.PeerConns {
		return nil, false
	}
	r.mu.conns[node]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		drop(r.mu.conns, node)
	}, true
}

// hold counts runs that are kept in memory.
func (r *room) hold(n int) (done func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.runs+n > r.limits.Runs {
		return nil, false
	}
	r.mu.runs += n
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mu.runs -= n
	}, true
}

// drop counts one less of a node, which is forgotten when it has none.
func drop(counts map[string]int, node string) {
	if counts[node]--; counts[node] == 0 {
		delete(counts, node)
	}
}
