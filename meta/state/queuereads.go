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
	Readers  []Reader  // by id, those that have left included
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
	for _, w := range sorted(&table[string, *reader]{m: q.readers}) {
		all.Readers = append(all.Readers, w.Reader)
	}
	return all, true
}

// Reader is one of the readers of a queue.
func (m *Machine) Reader(view, id string) (Reader, bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok || q.readers[id] == nil {
		return Reader{}, false
	}
	return q.readers[id].Reader, true
}

// Readers are the readers of a queue, by id, the ones that have left included.
func (m *Machine) Readers(view string) (all []Reader) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return nil
	}
	for _, w := range sorted(&table[string, *reader]{m: q.readers}) {
		all = append(all, w.Reader)
	}
	return all
}

// LastTaken is the last request of a reader: its nonce and its result.
func (m *Machine) LastTaken(view, id string) (nonce uint64, last TakenUnit, ok bool) {
	s, done := m.read()
	defer done()
	q, ok := s.queues().get(view)
	if !ok {
		return 0, TakenUnit{}, false
	}
	w := q.readers[id]
	if w == nil {
		return 0, TakenUnit{}, false
	}
	return w.Nonce, w.Last, true
}
