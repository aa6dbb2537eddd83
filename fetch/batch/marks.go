package batch

import (
	"context"
	"sync"

	"rankfs/shuffle/plan"
)

// Marks are the numbers of bytes of a batch before every 4096th of its records, and
// in all of it. By them any part of its record table is made from few records, and
// the table itself is stored nowhere. They are added up once for all callers: one caller at
// a time walks over the records, and if it leaves the next one goes on from there. Only
// that caller adds to them: the lock is for those that read them meanwhile.
type marks struct {
	of      planned
	records uint64
	walking chan struct{} // holds one token, of the caller that walks

	mu struct {
		sync.Mutex
		before []int64 // one for each plan.RecordsAtOnce; the last is that of all records, if they are whole
		whole  bool
	}
}

func newMarks(of planned) *marks {
	m := &marks{of: of, records: of.count(), walking: make(chan struct{}, 1)}
	m.mu.before = []int64{0}
	return m
}

// count is the number of marks when they are whole.
func (m *marks) count() int { return int(m.records/plan.RecordsAtOnce) + 2 }

func (m *marks) known() (before []int64, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.before, m.mu.whole
}

// marksAtOnce is how many marks a walk makes before others have their turn: some 5 ms.
const marksAtOnce = 16

// complete sees to it that they are whole, and returns the bytes of all records. Walks
// take turns, in the sequence in which they came, so that a batch without end, as a name
// can ask for, does not keep others waiting.
func (m *marks) complete(ctx context.Context, walks chan struct{}) (int64, error) {
	select {
	case m.walking <- struct{}{}:
		defer func() { <-m.walking }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for {
		before, whole := m.known()
		if whole {
			return before[len(before)-1], nil
		}
		select {
		case walks <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		err := m.walk(ctx, before, marksAtOnce)
		<-walks
		if err != nil {
			return 0, err
		}
	}
}

// walk goes on from what is known, and makes so many marks at most.
func (m *marks) walk(ctx context.Context, before []int64, most int) error {
	x, from, bytes := m.of.version.Index, uint64(len(before)-1)*plan.RecordsAtOnce, before[len(before)-1]
	err := m.of.eachFrom(from, func(r *recordBatch) error {
		r.extents = x.AppendExtents(r.extents[:0], r.records)
		for _, e := range r.extents {
			bytes += e.Len
		}
		m.mu.Lock()
		m.mu.before = append(m.mu.before, bytes)
		m.mu.Unlock()
		if most--; most == 0 {
			return errEnough
		}
		return ctx.Err()
	})
	if err == errEnough {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.whole = true
	return nil
}
