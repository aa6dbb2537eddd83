package batch

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/dgraph-io/ristretto/v2"
)

// Sizes remembers the sizes of batches, which a listing asks for and a fill again: with
// a shuffled order each is a walk through the index.
type Sizes struct {
	cache *ristretto.Cache[string, int64]
	*allMarks
}

// NewSizes makes room for some 65,000 sizes.
func NewSizes() (*Sizes, error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, int64]{
		NumCounters:        1 << 19, // ten times the entries
		MaxCost:            1 << 16, // entries: some 6 MiB
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("size cache: %w", err)
	}
	return &Sizes{c, newAllMarks()}, nil
}

// Close ends the goroutines of the cache.
func (s *Sizes) Close() { s.cache.Close() }

func (s *Sizes) size(of planned, compute func() (int64, error)) (int64, error) {
	var key [32]byte
	id := of.plan.ID()
	copy(key[:], id[:])
	binary.LittleEndian.PutUint64(key[16:], of.rank)
	binary.LittleEndian.PutUint64(key[24:], of.step)
	k := string(key[:])
	size, ok := s.cache.Get(k)
	if ok {
		return size, nil
	}
	size, err := compute()
	if err == nil {
		s.cache.Set(k, size, 1) // it may refuse: then it is computed again
	}
	return size, err
}

// maxMarks bounds the marks that are remembered: 8 MiB, enough for a few billion
// records.
const maxMarks = 1 << 20

// A batchID names a batch of a plan.
type batchID struct {
	plan       [16]byte
	rank, step uint64
}

// allMarks holds the marks of the batches that were asked for last. The lock guards the
// list and how many users each of them has, not what is in them.
type allMarks struct {
	walks chan struct{} // a token for each walk, by a fill or not: sizes must not take all processors

	mu struct {
		sync.Mutex
		byBatch map[batchID]*list.Element
		order   *list.List // of *usedMarks, most recently used first
		count   int        // of all marks
	}
}

// usedMarks are the marks of a batch, with the number of their users.
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

// marks returns the marks of a batch, new ones if there are none. They stay until the
// caller calls done, and then as long as there is room.
func (a *allMarks) marks(of planned) (m *marks, done func()) {
	id := batchID{of.plan.ID(), of.rank, of.step}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.mu.byBatch[id]
	if e == nil {
		e = a.mu.order.PushFront(&usedMarks{marks: newMarks(of), id: id})
		a.mu.byBatch[id] = e
		a.mu.count += e.Value.(*usedMarks).count()
	}
	a.mu.order.MoveToFront(e)
	u := e.Value.(*usedMarks)
	u.users++
	return u.marks, func() { a.leave(u) }
}

// leave ends a use, and then drops unused marks, the oldest first, until the rest
// fits maxMarks.
func (a *allMarks) leave(u *usedMarks) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u.users--
	for e := a.mu.order.Back(); e != nil && a.mu.count > maxMarks; {
		before, old := e.Prev(), e.Value.(*usedMarks)
		if old.users == 0 {
			a.mu.order.Remove(e)
			delete(a.mu.byBatch, old.id)
			a.mu.count -= old.count()
		}
		e = before
	}
}
