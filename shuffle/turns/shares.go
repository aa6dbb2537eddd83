package turns

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Party is the job that some work is done for. The work counts by the
// weight of its stage.
type Party struct {
	Job    uint64 // its number
	Weight uint64 // zero: the greatest
}

// PartyOf is the job of a stage, with the weight of that.
func PartyOf(is state.PoolStage) Party { return Party{is.Job, is.Spec.Weighs()} }

// Shares divide something of this node among the jobs that want it: those that wait come by
// turns, so that what each has got, divided by its weight, is equal. A job that has had nothing
// for a while has no right to that. Requests of one job come in their order, and one for much is
// not passed by one for little. The lock guards all that may change.
type Shares struct {
	all int64

	mu struct {
		sync.Mutex
		used  int64
		given uint64  // how often some was given back
		got   float64 // what the job that was served last had got before
		by    map[uint64]*sharing
		turns uint64 // of jobs that began to wait
	}
}

// A sharing is a job that waits, or has lately got something.
type sharing struct {
	got  float64 // by weight
	turn uint64  // of those that have got the same the first to wait comes first
	wait []*request
}

// A request is a request that waits.
type request struct {
	n, cost int64
	weight  uint64
	granted chan struct{} // is closed then
}

// New divides so much.
func New(all int64) *Shares {
	s := &Shares{all: max(1, all)}
	s.mu.by = make(map[uint64]*sharing)
	return s
}

// Take waits for n of it, or for all if that is less, until give is called, for work that
// costs so much.
func (s *Shares) Take(ctx context.Context, of Party, n, cost int64) (give func(), err error) {
	return s.takeSoon(ctx, of, n, cost, nil)
}

// takeSoon is take for a caller that leaves, with ErrBusy, when a tick has come and none of it
// was given back since the one before.
func (s *Shares) takeSoon(ctx context.Context, of Party, n, cost int64, ticks <-chan time.Time) (give func(), err error) {
	c := &request{min(n, s.all), cost, cmp.Or(of.Weight, meta.MaxWeight), make(chan struct{})}
	s.ask(of.Job, c)
	for before := s.given(); err == nil; {
		select {
		case <-c.granted:
			return sync.OnceFunc(func() { s.give(c.n) }), nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-ticks:
			now := s.given()
			if now == before {
				err = meta.ErrBusy
			}
			before = now
		}
	}
	if s.leave(of.Job, c) {
		return nil, err
	}
	return sync.OnceFunc(func() { s.give(c.n) }), nil
}

// given is the number of times that some of it was given back.
func (s *Shares) given() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.given
}

func (s *Shares) ask(job uint64, c *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.mu.by[job]
	if j == nil {
		j = new(sharing)
		s.mu.by[job] = j
	}
	if len(j.wait) == 0 {
		s.mu.turns++
		j.got, j.turn = max(j.got, s.mu.got), s.mu.turns
	}
	j.wait = append(j.wait, c)
	s.grant()
}

// leave reports whether a request is withdrawn before it was granted.
func (s *Shares) leave(job uint64, c *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.mu.by[job]
	if j == nil {
		return false
	}
	i := slices.Index(j.wait, c)
	if i < 0 {
		return false
	}
	j.wait = slices.Delete(j.wait, i, i+1)
	s.grant() // to requests that waited behind it
	return true
}

// Charge takes n of it, until give is called, for work that has begun and cannot wait: whether
// there is so much or not. Others wait the longer.
func (s *Shares) Charge(n int64) (give func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.used += n
	return sync.OnceFunc(func() { s.give(n) })
}

func (s *Shares) give(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.used -= n
	s.mu.given++
	s.grant()
}

// grant gives as much as there is. The lock is held.
func (s *Shares) grant() {
	for {
		next := s.next()
		if next == nil && s.mu.used == 0 {
			clear(s.mu.by)
			s.mu.got = 0
		}
		if next == nil || next.wait[0].n > s.all-s.mu.used {
			return
		}
		c := next.wait[0]
		next.wait = next.wait[1:]
		s.mu.used += c.n
		s.mu.got = next.got
		next.got += float64(max(1, c.cost)) / float64(c.weight)
		if len(next.wait) > 0 {
			s.mu.turns++
			next.turn = s.mu.turns
		}
		close(c.granted)
	}
}

// next is the job whose turn it is. Those are forgotten that have no request and have got no more
// than others. The lock is held.
func (s *Shares) next() (next *sharing) {
	for id, j := range s.mu.by {
		switch {
		case len(j.wait) == 0 && j.got <= s.mu.got:
			delete(s.mu.by, id)
		case len(j.wait) == 0:
		case next == nil, j.got < next.got, j.got == next.got && j.turn < next.turn:
			next = j
		}
	}
	return next
}
