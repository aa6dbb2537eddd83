package state

import (
	"cmp"
	"maps"
	"slices"
)

// A Summary has the sizes of the state's tables.
type Summary struct {
	Cluster  Cluster
	Now      int64  // time of the cluster, nanoseconds since 1970
	Applied  uint64 // index of the last command
	Tokens   int    // with uses left
	Nodes    int
	Up       int // of the nodes
	Removed  int
	Datasets int
	Jobs     int // numbers of ranks, of all datasets, with claims
	Plans    int
	Queues   int
	Units    uint64 // of all queues
	Workers  int    // of all queues, those that have left included
	Settings int
}

// read is how every read begins: the state, and what ends the read.
func (m *Machine) read() (*state, func()) {
	m.mu.RLock()
	return m.mu.state, m.mu.RUnlock
}

// Summary counts the entries of the state's tables.
func (m *Machine) Summary() Summary {
	s, done := m.read()
	defer done()
	sum := Summary{
		Cluster: s.Cluster, Now: s.Now, Applied: s.Applied,
		Tokens: s.tokens().len() - s.tokens().spent, Nodes: s.nodes().len(), Removed: s.nodes().removed.len(),
		Datasets: s.datasets().len(), Jobs: s.jobs().len(), Plans: s.plans().len(),
		Queues: s.queues().len(), Units: s.queues().units, Workers: s.queues().workers, Settings: s.settings().len(),
	}
	for _, n := range s.nodes().m {
		if n.Up {
			sum.Up++
		}
	}
	return sum
}

// Nodes are those of the cluster, by id.
func (m *Machine) Nodes() []Node {
	s, done := m.read()
	defer done()
	return values(&s.nodes().table)
}

// Node is the node of that id.
func (m *Machine) Node(id string) (Node, bool) {
	s, done := m.read()
	defer done()
	return s.nodes().get(id)
}

// HostOf is the host of a node that there is or was; empty if there was none.
func (m *Machine) HostOf(id string) string {
	s, done := m.read()
	defer done()
	if n, ok := s.nodes().get(id); ok {
		return n.Host
	}
	host, _ := s.nodes().removed.get(id)
	return host
}

// Removed reports whether there was a node of that id, for the last time.
func (m *Machine) Removed(id string) bool {
	s, done := m.read()
	defer done()
	_, ok := s.nodes().removed.get(id)
	return ok
}

// Admits reports whether a node may take part with the key of that fingerprint. One
// that is not known yet may: this machine can be behind.
func (m *Machine) Admits(id, key string) bool {
	s, done := m.read()
	defer done()
	if _, removed := s.nodes().removed.get(id); removed {
		return false
	}
	n, known := s.nodes().get(id)
	return !known || n.Key == "" || n.Key == key
}

// Tokens are those with uses left, by hash.
func (m *Machine) Tokens() []Token {
	s, done := m.read()
	defer done()
	var live []Token
	for _, t := range sorted(&s.tokens().table) {
		if !t.isSpent() {
			live = append(live, t)
		}
	}
	return live
}

// Token is the token of that hash, even if it is used up, until it expires.
func (m *Machine) Token(hash string) (Token, bool) {
	s, done := m.read()
	defer done()
	return s.tokens().get(hash)
}

// Settings are all that are set.
func (m *Machine) Settings() map[string]string {
	s, done := m.read()
	defer done()
	return maps.Clone(s.settings().m)
}

// Setting is one of them, empty if it is not set.
func (m *Machine) Setting(key string) string {
	s, done := m.read()
	defer done()
	return s.settings().m[key]
}

// Datasets are all, by name.
func (m *Machine) Datasets() []Dataset {
	s, done := m.read()
	defer done()
	var all []Dataset
	for _, d := range sorted(&s.datasets().table) {
		all = append(all, *d)
	}
	return all
}

// Dataset is the one of that name.
func (m *Machine) Dataset(name string) (Dataset, bool) {
	s, done := m.read()
	defer done()
	d, ok := s.datasets().get(name)
	if !ok {
		return Dataset{}, false
	}
	return *d, true
}

// Claims says which node claims each of so many ranks of a dataset: nil if no
// rank was ever claimed.
func (m *Machine) Claims(dataset string, ranks uint64) Runs {
	s, done := m.read()
	defer done()
	if j, ok := s.jobs().get(jobKey{dataset, ranks}); ok {
		return j.runs()
	}
	return nil
}

// Plan is what is pinned for a view.
func (m *Machine) Plan(view string) (Plan, bool) {
	s, done := m.read()
	defer done()
	p, ok := s.plans().get(view)
	if !ok {
		return Plan{}, false
	}
	return *p, true
}

// Overtaken reports whether a plan, of that sequence, of a view was unpinned, or
// another one was pinned. One that was dropped for room, and no other pinned,
// stands where it is known.
func (m *Machine) Overtaken(view string, sequence uint64) bool {
	s, done := m.read()
	defer done()
	if p, ok := s.plans().get(view); ok {
		return p.Sequence != sequence
	}
	return sequence > s.Evicted
}

// Plans are all that are pinned, the latest last.
func (m *Machine) Plans() []Plan {
	s, done := m.read()
	defer done()
	all := make([]Plan, 0, s.plans().len())
	for _, p := range s.plans().m {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Plan) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// Queue is the queue of a view, with its counts.
func (m *Machine) Queue(view string) (Queue, bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return Queue{}, false
	}
	return *q.info(), true
}

// Queues are all, by view.
func (m *Machine) Queues() []Queue {
	s, done := m.read()
	defer done()
	var all []Queue
	for _, q := range sorted(&s.queues().table) {
		all = append(all, *q.info())
	}
	return all
}

// A QueueState is a queue as a scheduler has to know it before its first
// choice. Afterwards the results of steps say what changes.
type QueueState struct {
	Queue
	Workers  []Worker  // by id, those that have left included
	Done     []uint64  // a bitmap: unit 0 is the lowest bit of the first word
	Suspects []Suspect // by unit
}

// QueueState is the queue of a view, with all there is to know about it.
func (m *Machine) QueueState(view string) (QueueState, bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return QueueState{}, false
	}
	all := QueueState{Queue: *q.info(), Done: q.units.words(q.Units), Suspects: q.suspected()}
	for _, w := range sorted(&table[string, *worker]{m: q.workers}) {
		all.Workers = append(all.Workers, w.Worker)
	}
	return all, true
}

// Worker is one of the workers of a queue.
func (m *Machine) Worker(view, id string) (Worker, bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok || q.workers[id] == nil {
		return Worker{}, false
	}
	return q.workers[id].Worker, true
}

// Workers are those of a queue, by id, the ones that have left included.
func (m *Machine) Workers(view string) (all []Worker) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return nil
	}
	for _, w := range sorted(&table[string, *worker]{m: q.workers}) {
		all = append(all, w.Worker)
	}
	return all
}

// LastStep is the last step of a worker: its nonce, and what came of it.
func (m *Machine) LastStep(view, id string) (nonce uint64, last Stepped, ok bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return 0, Stepped{}, false
	}
	w := q.workers[id]
	if w == nil {
		return 0, Stepped{}, false
	}
	return w.Nonce, w.Last, true
}
