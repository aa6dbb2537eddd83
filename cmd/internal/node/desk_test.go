package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// A parliament is a cluster that agrees at once, now and then without telling.
type parliament struct {
	t      *testing.T
	member *member
	mu     struct {
		sync.Mutex
		random *rand.Rand
	}
}

func newParliament(t *testing.T, m *member) *parliament {
	p := &parliament{t: t, member: m}
	p.mu.random = rand.New(rand.NewPCG(1, 2))
	return p
}

func (p *parliament) Leads() bool { return true }

func (p *parliament) Do(_ context.Context, c state.Command) (state.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.member.machine.Summary()
	c.Stamp(s.Now + 1)
	data, err := state.Encode(c)
	if err != nil {
		return state.Result{}, err
	}
	r, err := p.member.machine.Apply(s.Applied+1, data)
	if _, step := c.(*state.Step); step && p.mu.random.IntN(20) == 0 {
		return state.Result{}, fmt.Errorf("whether a step was made %w", meta.ErrUnavailable)
	}
	return r, err
}

func (p *parliament) chance(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.random.IntN(n)
}

// A hall is where a dispatcher's desks are, without the rest of a node.
type hall struct {
	*parliament
	*dispatcher
	desk func() *desk // of the queue
}

const hallView = "d@epoch=0,ranks=3,seed=0,order=none,step=30,tail=keep,assign=local"

func newHall(t *testing.T, policy queue.Policy) *hall {
	m := memberOf(t, 3)
	chunks := [][]string{{"a", "b"}, {"b", "c"}, {"c"}, {"a"}, {}}
	n := planner(t, m, "ranks=3,batch=10", 400, chunks...)
	asked, d, err := n.resolve(hallView)
	if err != nil {
		t.Fatal(err)
	}
	v := &view{batches: batchesOf(asked, d.version, n.sizes), dataset: d, host: "a"}
	h := &hall{parliament: newParliament(t, m), dispatcher: newDispatcher(n)}
	apply(t, m,
		&state.PutDataset{Name: "d", Record: []byte("{}"), Index: fmt.Sprintf("%064d", 0)},
		&state.OpenQueue{View: hallView, Generation: 1, Units: v.Cut().Ranks * v.Cut().Steps(), Policy: policy.String()})
	h.desk = func() *desk {
		past, _ := m.machine.QueueState(hallView)
		h.dispatcher.mu.Lock()
		defer h.dispatcher.mu.Unlock()
		k := h.dispatcher.mu.desks[hallView]
		if k == nil || k.run != past.Run {
			k = &desk{agreement: h.parliament, state: m.machine, now: h.now, log: slog.New(slog.DiscardHandler)}
			if err := k.begin(past, v); err != nil {
				t.Error(err)
			}
			h.dispatcher.mu.desks[hallView] = k
		}
		return k
	}
	return h
}

// A caller is a reader of the queue.
type caller struct {
	*hall
	id       string
	turns    uint64
	holds    int64
	finished []int64 // that it knows of
}

// next asks until it has an answer: a unit, that the one before is lost, or the
// end.
func (c *caller) next(ctx context.Context) turn {
	node := made(len(c.id) % 3).ID
	for {
		q := question{
			View: hallView, Generation: 1, Worker: c.id, Node: node, Rank: uint64(len(c.id) % 3),
			Turn: c.turns + 1, Finish: c.holds >= 0, Wait: true,
		}
		if c.chance(3) == 0 { // to look first makes no difference
			if _, err := c.desk().peek(q); err != nil {
				c.t.Errorf("%s peeks: %v", c.id, err)
			}
		}
		a, err := c.desk().answer(ctx, q)
		switch {
		case ctx.Err() != nil || err != nil && !errors.Is(err, meta.ErrUnavailable):
			c.t.Errorf("%s: %v", c.id, errors.Join(err, ctx.Err()))
			return turn{Unit: -1}
		case err != nil || a.Wait:
			continue
		}
		if c.holds >= 0 && !a.Lost {
			c.finished = append(c.finished, c.holds)
		}
		c.turns++
		c.holds = a.Unit
		return a
	}
}

// work takes units until there are none. At a fatal one, and one time in ten, it
// ends, and another begins in its place.
func (h *hall) work(ctx context.Context, name string, fatal int64) (finished []int64, end turn) {
	for life := 0; ; life++ {
		c := &caller{hall: h, id: fmt.Sprint(name, life), holds: -1}
		for {
			a := c.next(ctx)
			if a.Unit < 0 && !a.Lost {
				return append(finished, c.finished...), a
			}
			if a.Unit >= 0 && (a.Unit == fatal || h.chance(10) == 0) {
				break
			}
		}
		finished = append(finished, c.finished...)
		if _, err := h.Do(ctx, &state.LeaveQueue{View: hallView, Worker: c.id}); err != nil {
			h.t.Error(err)
		}
	}
}

// all has six readers work while nodes are seen down and up, and counts who has
// finished what. It returns what each reader was told at the end.
func (h *hall) all(ctx context.Context, name string, fatal int64, finishers map[int64]int) (ends []turn) {
	var mu sync.Mutex
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Go(func() {
			finished, end := h.work(ctx, fmt.Sprintf("%s%0*d-", name, i+1, 0), fatal)
			mu.Lock()
			defer mu.Unlock()
			for _, unit := range finished {
				finishers[unit]++
			}
			ends = append(ends, end)
		})
	}
	readers.Go(func() {
		for i := range 30 {
			id := made(i % 3).ID
			for _, c := range []state.Command{&state.Health{ID: id}, &state.Health{ID: id, Up: true}} {
				if _, err := h.Do(ctx, c); err != nil {
					h.t.Error(err)
				}
			}
			time.Sleep(time.Millisecond) // so that it meets the readers at work
		}
	})
	readers.Wait()
	return ends
}

// Readers end with work in hand, one unit ends all of them, nodes are seen down
// and up, and the cluster does not say what became of some steps: all the same
// each unit has one finisher or is set aside, and everybody comes to the end and
// is told. What was set aside is done by others later.
func TestReadersAndTheirDesk(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			h := newHall(t, policy)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var follower sync.WaitGroup
			following, stop := context.WithCancel(ctx)
			defer follower.Wait()
			defer stop()
			follower.Go(func() { h.follow(following) })
			const fatal = 5
			finishers := make(map[int64]int)
			machine := h.member.machine
			for _, end := range h.all(ctx, "mortal", fatal, finishers) {
				if q, _ := machine.Queue(hallView); end.Aside != q.Aside {
					t.Errorf("a reader was told %+v of %+v", end, q)
				}
			}
			if fate := machine.Fate(hallView, fatal); fate != state.SetAside {
				t.Errorf("what ends all readers is %v", fate)
			}
			q, _ := machine.Queue(hallView)
			if q.Done+uint64(q.Aside) != q.Units || q.Held != 0 {
				t.Errorf("at the end %+v", q)
			}
			for q.Aside > 0 { // there may be bad luck again
				if _, err := h.Do(ctx, &state.ResetQueue{View: hallView, Run: q.Run, Aside: true}); err != nil {
					t.Fatal(err)
				}
				h.all(ctx, fmt.Sprint("careful", q.Run), -1, finishers)
				q, _ = machine.Queue(hallView)
			}
			for unit := range int64(q.Units) {
				if n := finishers[unit]; n != 1 || machine.Fate(hallView, unit) != state.Done {
					t.Errorf("unit %d was finished %d times", unit, n)
				}
			}
		})
	}
}
