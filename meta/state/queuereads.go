package state

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
// choice. Afterwards the results of TakeUnit say what changes.
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

// Workers are the workers of a queue, by id, the ones that have left included.
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

// LastTaken is the last request of a worker: its nonce and its result.
func (m *Machine) LastTaken(view, id string) (nonce uint64, last TakenUnit, ok bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return 0, TakenUnit{}, false
	}
	w := q.workers[id]
	if w == nil {
		return 0, TakenUnit{}, false
	}
	return w.Nonce, w.Last, true
}
