package state

// A state is all that is replicated, and what is derived from it.
//
// Invariants, after every command:
//   - a unit of a queue has one finisher at most and two holders at most;
//   - a unit that was set aside, and is not done, is taken by nobody;
//   - no worker holds a unit on a node that is down or removed;
//   - a token was redeemed as often as it says, and never more than allowed;
//   - plans, claims and queues are of the current generation of a dataset;
//   - every bound of bounds.go.
type state struct {
	header
	tokens   table[string, Token]
	nodes    table[string, Node]
	removed  table[string, string] // hosts of nodes that there were
	datasets table[string, *Dataset]
	jobs     table[jobKey, *job]
	plans    table[string, *Plan]
	queues   table[string, *queue]
	settings table[string, string]

	// era counts snapshots. A job or queue of an earlier era is shared with
	// one, and is copied before it is changed.
	era     uint64
	changed struct{ cluster, queues bool } // by the command that is being applied
	derived
}

// header is what there is one of.
type header struct {
	Version    int `json:",omitempty"` // of the commands that are taken; none is Oldest
	Cluster    Cluster
	Now        int64  // time of the cluster
	Generation uint64 // the last that a dataset was given
	Sequence   uint64 // the last number that a job, plan or queue was given
	Evicted    uint64 `json:",omitempty"` // of the last plan that was dropped for room
	Applied    uint64 `json:"-"`          // index of the last command
}

// derived follows from the rest, and is in no snapshot.
type derived struct {
	expiry   int64  // of the token that expires next
	spent    int    // tokens
	records  int64  // bytes of datasets' records
	claimed  uint64 // ranks of all jobs
	maps     rankMaps
	pins     []pin  // plans in the order of their pinning, and some that are gone
	units    uint64 // of all queues
	workers  int    // of all queues
	suspects int    // of all queues
}

func newState() *state {
	return &state{derived: derived{
		maps: rankMaps{all: make(map[[32]byte]*rankMap)},
	}}
}

// advance has it be as late as the clock of the leader shows. That may be earlier
// than before: else a clock that was years ahead for a moment would end time for
// years, and no token would expire.
func (s *state) advance(at int64) {
	s.Now = max(at, 0)
	if s.tokens.len() > 0 && s.Now >= s.expiry {
		s.dropExpired()
	}
}

func (s *state) next() uint64 {
	s.Sequence++
	return s.Sequence
}

// share is a copy of the state that stays what it is. Nothing may be applied
// to it.
func (s *state) share() *state {
	c := &state{
		header:   s.header,
		tokens:   s.tokens.share(),
		nodes:    s.nodes.share(),
		removed:  s.removed.share(),
		datasets: s.datasets.share(),
		jobs:     s.jobs.share(),
		plans:    s.plans.share(),
		queues:   s.queues.share(),
		settings: s.settings.share(),
	}
	s.era++
	return c
}
