package node

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
)

// Marks are how many bytes of a batch stand before every 4096th of its records, and
// in all of it. By them any part of its record table is made from few records, and
// the table itself is nowhere. They are reckoned once for all who ask: one at a
// time, and who leaves leaves what there is of them to the next.
type marks struct {
	filler     *filler
	rank, step uint64
	records    uint64
	turn       chan struct{} // holds one token, of who reckons

	mu struct {
		sync.Mutex
		before []int64 // one for each recordsAtOnce; the last is that of all records, if they are whole
		whole  bool
	}
}

func (p *filler) newMarks(rank, step uint64) *marks {
	m := &marks{filler: p, rank: rank, step: step, records: p.Records(rank, step), turn: make(chan struct{}, 1)}
	m.mu.before = []int64{0}
	return m
}

// count is how many there are when they are whole.
func (m *marks) count() int { return int(m.records/recordsAtOnce) + 2 }

func (m *marks) known() (before []int64, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.before, m.mu.whole
}

// reckon sees to it that they are whole, and returns the bytes of all records.
func (m *marks) reckon(ctx context.Context, walks chan struct{}) (int64, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	before, whole := m.known()
	if !whole {
		select {
		case walks <- struct{}{}:
			defer func() { <-walks }()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if err := m.walk(ctx, uint64(len(before)-1)*recordsAtOnce, before[len(before)-1]); err != nil {
			return 0, err
		}
		before, _ = m.known()
	}
	return before[len(before)-1], nil
}

// walk goes on from a record before which there are so many bytes.
func (m *marks) walk(ctx context.Context, from uint64, bytes int64) error {
	x := m.filler.content.index
	err := m.filler.eachFrom(m.rank, m.step, from, func(b *recordBatch) error {
		b.extents = x.AppendExtents(b.extents[:0], b.records)
		for _, e := range b.extents {
			bytes += e.Len
		}
		m.mu.Lock()
		m.mu.before = append(m.mu.before, bytes)
		m.mu.Unlock()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.whole = true
	return nil
}

// An offsets is the record table of a batch: where each record begins, and where
// the last one ends. Any part of it is made when it is asked for.
type offsets struct {
	filler     *filler
	rank, step uint64
	records    uint64
	length     int64   // of each record, if that is all there is to know
	before     []int64 // or else the marks
}

// Offsets is the record table of a batch.
func (p *filler) Offsets(ctx context.Context, rank, step uint64) (*offsets, error) {
	o := &offsets{filler: p, rank: rank, step: step, records: p.Records(rank, step)}
	if length, ok := p.content.index.Uniform(); ok {
		o.length = length
		return o, nil
	}
	m, done := p.sizes.marks(p, rank, step)
	defer done()
	if _, err := m.reckon(ctx, p.sizes.walks); err != nil {
		return nil, err
	}
	o.before, _ = m.known()
	return o, nil
}

// Append appends n entries of the table, from one on, as far as there are so many.
func (o *offsets) Append(ctx context.Context, dst []byte, first, n uint64) ([]byte, error) {
	if first > o.records {
		return dst, nil
	}
	n = min(n, o.records+1-first)
	if o.before == nil {
		for i := first; i < first+n; i++ {
			dst = binary.LittleEndian.AppendUint64(dst, i*uint64(o.length))
		}
		return dst, nil
	}
	mark := min(first/recordsAtOnce, uint64(len(o.before)-1))
	at, entry := o.before[mark], mark*recordsAtOnce
	end := first + n
	err := o.filler.eachFrom(o.rank, o.step, entry, func(b *recordBatch) error {
		b.extents = o.filler.content.index.AppendExtents(b.extents[:0], b.records)
		for _, e := range b.extents {
			if entry >= first && entry < end {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
			}
			at, entry = at+e.Len, entry+1
		}
		if entry >= end {
			return errEnough
		}
		return ctx.Err()
	})
	if err != nil && err != errEnough {
		return nil, err
	}
	if err == nil && end > o.records { // where the last record ends
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return dst, nil
}

// errEnough ends a walk over records.
var errEnough = errors.New("enough")

// mostMarks bounds the marks that are remembered: 8 MiB, those of a few billion
// records.
const mostMarks = 1 << 20

// A batchID names a batch of a plan.
type batchID struct {
	plan       [16]byte
	rank, step uint64
}

// allMarks are those that were asked for last.
type allMarks struct {
	walks chan struct{} // a token for each who reckons, fills too: sizes must not have all processors

	mu struct {
		sync.Mutex
		byBatch map[batchID]*list.Element
		order   *list.List // of *usedMarks; the one asked for last comes first
		count   int        // of all marks
	}
}

type usedMarks struct {
	*marks
	id    batchID
	users int
}

func newAllMarks() *allMarks {
	a := &allMarks{walks: make(chan struct{}, max(1, runtime.NumCPU()/2))}
	a.mu.byBatch, a.mu.order = make(map[batchID]*list.Element), list.New()
	return a
}

// marks finds those of a batch, or begins them. They stay until done is called, and
// then as long as there is room.
func (a *allMarks) marks(p *filler, rank, step uint64) (m *marks, done func()) {
	id := batchID{p.ID(), rank, step}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.mu.byBatch[id]
	if e == nil {
		e = a.mu.order.PushFront(&usedMarks{marks: p.newMarks(rank, step), id: id})
		a.mu.byBatch[id] = e
		a.mu.count += e.Value.(*usedMarks).count()
	}
	a.mu.order.MoveToFront(e)
	u := e.Value.(*usedMarks)
	u.users++
	return u.marks, func() { a.leave(u) }
}

// leave ends a use, and forgets what there is no room for.
func (a *allMarks) leave(u *usedMarks) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u.users--
	for e := a.mu.order.Back(); e != nil && a.mu.count > mostMarks; {
		before, old := e.Prev(), e.Value.(*usedMarks)
		if old.users == 0 {
			a.mu.order.Remove(e)
			delete(a.mu.byBatch, old.id)
			a.mu.count -= old.count()
		}
		e = before
	}
}
