package group

import (
	"sync"
	"time"

	"rankfs/meta/state"
)

// A pulse is how a node says that it is there.
type pulse struct {
	Speaks  int    `json:"speaks,omitempty"` // the newest version of commands that it understands, if not the oldest
	Applied uint64 `json:"applied"`
	Signs   bool   `json:"signs,omitempty"` // has the authority's key
	Clock   int64  `json:"clock"`           // what its clock shows, in nanoseconds since 1970
}

// sightings are what the leader knows of each node since it has led: when it answered
// last, and what it said. They begin anew with each lead, so that no node is taken for
// dead because of what another leader heard; a node that has never led has none.
//
// Any goroutine may look and note. The lock is held for no more than that.
type sightings struct {
	dead time.Duration // without an answer
	mu   struct {
		sync.Mutex
		began time.Time // to lead
		last  map[string]time.Time
		said  map[string]pulse
		off   map[string]time.Duration // how far their clocks are ahead of this node's
		lost  map[string]bool          // nodes whose log is lost, until they begin anew
	}
}

// begin forgets all, when this node begins to lead. The nodes that there are have until
// dead is over to answer.
func (s *sightings) begin(ids []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last, s.mu.said, s.mu.lost = make(map[string]time.Time), make(map[string]pulse), make(map[string]bool)
	s.mu.off, s.mu.began = make(map[string]time.Duration), now
	for _, id := range ids {
		s.mu.last[id] = now
	}
}

// saw notes what a node has said when this one's clock showed what it shows.
func (s *sightings) saw(id string, p pulse, clock, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last[id], s.mu.said[id] = now, p
	s.mu.off[id] = time.Unix(0, p.Clock).Sub(clock)
}

// doubt notes how far off a node's clock seems to be that does not answer.
func (s *sightings) doubt(id string, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.off[id] = ahead
}

// ahead is how far the clock of a node was ahead of this one's.
func (s *sightings) ahead(id string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.off[id]
}

// heard notes that a node has said something.
func (s *sightings) heard(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.last != nil { // this node has led
		s.mu.last[id] = now
	}
}

// found notes that a node has begun.
func (s *sightings) found(id string, now time.Time) {
	s.heard(id, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.lost, id)
}

// lose notes that a node has nothing of what Raft counts on.
func (s *sightings) lose(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lost != nil {
		s.mu.lost[id] = true
		s.mu.last[id] = now
	}
}

// isLost reports whether the log of a node is lost.
func (s *sightings) isLost(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lost[id]
}

// signs reports whether a node has said that it has the authority's key, and
// whether it has said anything.
func (s *sightings) signs(id string) (signs, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return p.Signs, known
}

// speaks is the newest version of commands that a node understands, if it has said
// anything.
func (s *sightings) speaks(id string) (version int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.mu.said[id]
	return max(p.Speaks, state.Oldest), known
}

// of is when a node answered last, and how far it was.
func (s *sightings) of(id string) (last time.Time, applied uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last[id], s.mu.said[id].Applied
}

// answered reports whether a node has said anything since this one leads.
func (s *sightings) answered(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last[id].After(s.mu.began)
}

// live reports whether a node has answered lately.
func (s *sightings) live(id string, now time.Time) bool {
	last, _ := s.of(id)
	return now.Sub(last) < s.dead
}
