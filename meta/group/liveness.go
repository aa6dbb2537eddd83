package group

import (
	"sync"
	"time"

	"rankfs/meta/state"
)

// A heartbeat says that a node is there.
type heartbeat struct {
	Speaks  int    `json:"speaks,omitempty"` // the newest version of commands that it understands, if not the oldest
	Applied uint64 `json:"applied"`
	Signs   bool   `json:"signs,omitempty"`  // has the authority's key
	Clock   int64  `json:"clock"`            // what its clock shows, in nanoseconds since 1970
	Leader  string `json:"leader,omitempty"` // who leads, as it knows; not said in a cluster of the release before
}

// liveness has the answers of each node since this one has led: for how long it was
// asked in vain, and what it said. It begins anew with each lead, so that no node is taken
// for dead because of what another leader heard; a node that has never led has none.
//
// A node is judged by the rounds in which it was asked and did not answer, and not by the
// clock: a leader that was stopped for a while, or had no processor, has asked no node then.
// So a round counts for as long as it took, but for no more than a node has to answer.
//
// Any goroutine may look and note. The lock is held for no more than that.
type liveness struct {
	dead time.Duration // asked in vain
	max  time.Duration // that one round counts
	mu   struct {
		sync.Mutex
		round int       // the one that is under way; 0: this node has never led
		ended time.Time // the round before
		vain  map[string]time.Duration
		last  map[string]int // the round in which a node said something; none since this node leads: 0
		said  map[string]heartbeat
		off   map[string]time.Duration // how far their clocks are ahead of this node's
		lost  map[string]bool          // nodes whose log is lost, until they begin anew
	}
}

// begin forgets all, when this node begins to lead. The nodes that there are have until
// dead is over to answer.
func (s *liveness) begin(ids []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.vain, s.mu.last = make(map[string]time.Duration), make(map[string]int)
	s.mu.said, s.mu.off, s.mu.lost = make(map[string]heartbeat), make(map[string]time.Duration), make(map[string]bool)
	s.mu.round, s.mu.ended = 1, now
	for _, id := range ids {
		s.mu.vain[id] = 0
	}
}

// looked notes that all nodes were asked, and have answered by now if they do.
func (s *liveness) looked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := min(now.Sub(s.mu.ended), s.max)
	for id := range s.mu.vain {
		if s.mu.last[id] != s.mu.round {
			s.mu.vain[id] += took
		}
	}
	s.mu.round, s.mu.ended = s.mu.round+1, now
}

// saw notes what a node has said when this one's clock showed what it shows.
func (s *liveness) saw(id string, p heartbeat, clock time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hear(id)
	s.mu.said[id], s.mu.off[id] = p, time.Unix(0, p.Clock).Sub(clock)
}

// hear notes that a node has said something. The lock is held.
func (s *liveness) hear(id string) { s.mu.vain[id], s.mu.last[id] = 0, s.mu.round }

// doubt notes how far off a node's clock seems to be that does not answer. One that was asked
// for the first time has until dead is over.
func (s *liveness) doubt(id string, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.off[id] = ahead
	if _, asked := s.mu.vain[id]; !asked {
		s.mu.vain[id] = 0
	}
}

// ahead is the time that the clock of a node was ahead of this one's.
func (s *liveness) ahead(id string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.off[id]
}

// heard notes that a node has said something.
func (s *liveness) heard(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.round > 0 {
		s.hear(id)
	}
}

// found notes that a node has begun.
func (s *liveness) found(id string) {
	s.heard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.lost, id)
}

// lose notes that a node has nothing of what Raft counts on.
func (s *liveness) lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.round > 0 {
		s.hear(id)
		s.mu.lost[id] = true
	}
}

// isLost reports whether the log of a node is lost.
func (s *liveness) isLost(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lost[id]
}

// signs reports whether a node has said that it has the authority's key, and
// whether it has said anything.
func (s *liveness) signs(id string) (signs, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return p.Signs, known
}

// speaks is the newest version of commands that a node understands, if it has said
// anything.
func (s *liveness) speaks(id string) (version int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return max(p.Speaks, state.Oldest), known
}

// applied is the index that a node had applied when it answered last.
func (s *liveness) applied(id string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.said[id].Applied
}

// answered reports whether a node has said anything since this one leads.
func (s *liveness) answered(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last[id] > 0
}

// asked reports whether a node was asked, or has said something.
func (s *liveness) asked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.mu.vain[id]
	return known
}

// live reports whether a node has answered lately.
func (s *liveness) live(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	vain, known := s.mu.vain[id]
	return known && vain < s.dead
}
