package state

import (
	"io"
	"maps"

	"github.com/cespare/xxhash/v2"
)

// New is the machine that no command was applied to.
func New() *Machine { return Speaking(Version) }

// Decode reads a command of up to this version.
func Decode(data []byte) (Command, error) { return decodeUpTo(Version, data) }

// Hash is the same for machines that are the same, whatever the index at which
// they came to be so.
func (m *Machine) Hash() uint64 {
	m.mu.Lock()
	s := m.mu.state.share()
	m.mu.Unlock()
	sum := xxhash.New()
	s.write(newFrameWriter(sum))
	return sum.Sum64()
}

// Read is the machine that a snapshot was made of. Any damage is ErrCorrupt.
func Read(r io.Reader) (*Machine, error) {
	m := New()
	if err := m.Restore(r); err != nil {
		return nil, err
	}
	return m, nil
}

// Kinds has an empty command of each kind.
func Kinds() (all []Command) {
	for _, k := range known.kinds {
		all = append(all, k.blank())
	}
	return all
}

// Applied is the index of the last command in it.
func (s *Snapshot) Applied() uint64 { return s.state.Applied }

// Settings are all that are set.
func (m *Machine) Settings() map[string]string {
	s, done := m.read()
	defer done()
	return maps.Clone(s.settings().m)
}

// Sizes are those of the state's tables.
type Sizes struct {
	Summary
	Now        int64 // time of the cluster, nanoseconds since 1970
	Tokens     int   // with uses left
	Nodes      int
	Up         int // of the nodes
	Removed    int
	Datasets   int
	RankCounts int // numbers of ranks, of all datasets, with claims
	Queues     int
	Units      uint64 // of all queues
	Readers    int    // of all queues, those that have left included
	Settings   int
}

// Sizes counts the entries of the state's tables.
func (m *Machine) Sizes() Sizes {
	sum := m.Summary()
	s, done := m.read()
	defer done()
	sizes := Sizes{
		Summary: sum, Now: s.Now,
		Tokens: s.tokens().len() - s.tokens().spent, Nodes: s.nodes().len(), Removed: s.nodes().removed.len(),
		Datasets: s.datasets().len(), RankCounts: s.claims().len(),
		Queues: s.queues().len(), Units: s.queues().units, Readers: s.queues().readers, Settings: s.settings().len(),
	}
	for _, n := range s.nodes().m {
		if n.Up {
			sizes.Up++
		}
	}
	return sizes
}

// PageSize is how many maps a page has at most.
const PageSize = pageSize

// A MapList is the maps of a stage, to be changed by no commands.
type MapList struct{ *Machine }

// NewMapList has none.
func NewMapList() MapList { return MapList{New()} }

func (l MapList) changed() *commits { return l.mu.state.pool().toChange(l.mu.state, 1) }

// Set enters a map.
func (l MapList) Set(c Commit) { l.changed().of.set(c) }

// Drop forgets a map.
func (l MapList) Drop(number uint64) { l.changed().of.drop(number) }

// Get is a map.
func (l MapList) Get(number uint64) (Commit, bool) { return l.Commit(1, number) }

// Maps are all.
func (l MapList) Maps() Maps { return l.Commits(1) }

// Pages is how many pages they are on.
func (l MapList) Pages() int { return len(l.changed().of.table) }
