package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"

	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// faults are what a disk may have.
var faults = []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS}

// trouble does something to the cluster.
func (r *run) trouble() {
	i, j := r.random.IntN(len(r.nodes)), r.random.IntN(len(r.nodes))
	switch r.random.IntN(14) {
	case 0, 1:
		r.net.isolate(r.nodes[i].id, r.nodes...)
	case 2:
		r.net.cut(r.nodes[i].id, r.nodes[j].id)
	case 3:
		for k, n := range r.nodes { // the leader, if one is known
			if g, _ := r.at(k); g.Leads() && g.Self() == n.id {
				r.net.isolate(n.id, r.nodes...)
			}
		}
	case 4:
		r.net.slow(time.Duration(r.random.IntN(5)) * time.Millisecond)
	case 5:
		r.restart(i, (*node).stop)
	case 6, 7:
		forgets := r.random.IntN(2) == 0
		r.restart(i, func(n *node) { n.kill(forgets) })
	case 8, 9:
		r.death(i, r.random.Int64N(units))
	case 10, 11:
		r.disk(i).fail(faults[r.random.IntN(len(faults))], r.random.IntN(2) == 0)
	default:
		r.heal()
	}
}

// restart ends a node in some way and starts it again, with a disk that is well.
func (r *run) restart(i int, end func(*node)) {
	if _, ended := r.end(i, end); ended {
		r.start(i)
	}
}

// death kills a node, and has it be taken for dead before it is started again. A worker
// there held a unit, which two others are given then; it finishes the unit too late, and
// is not given it again before one of them has finished it.
func (r *run) death(i int, unit int64) {
	if !r.dying.TryLock() {
		return // without two the others might be no majority
	}
	dead, others := r.locals[i], []*stepper{r.locals[(i+1)%len(r.nodes)], r.locals[(i+2)%len(r.nodes)]}
	r.others.Go(func() {
		defer r.dying.Unlock()
		dead.take(unit)
		life, ended := r.end(i, func(n *node) { n.kill(false) })
		if !ended {
			return
		}
		r.record(dead.client, asked{kind: "death", worker: i, take: int64(len(r.nodes))}, func(context.Context) (seen, error) {
			return seen{}, r.giveUp(i, life)
		})
		dead.take(-1)
		for _, w := range others {
			w.take(unit)
		}
		r.start(i)
		dead.take(unit)
		for _, w := range others {
			w.take(-1)
		}
	})
}

// giveUp waits until some node knows that one is down in that life: the leader has asked it
// in vain for long enough. Without it there may be no leader, as one that was removed has its
// vote for a moment more.
func (r *run) giveUp(i int, life uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := r.nodes[i].id
	err := eventually.Until(ctx, func() error {
		for k := range r.nodes {
			g, m := r.at(k)
			if n, _ := m.Node(id); n.Life == life && !n.Up {
				return nil
			}
			g.duties.seen.askInVain(id)
		}
		return errors.New("no node knows that it is down")
	})
	if g, _ := r.at(i); err != nil {
		if _, unled := g.Do(context.Background(), &state.Setting{Key: "k", Value: "v"}); unled == nil {
			r.t.Errorf("node %s is dead, and up: %v", id, err)
		}
	}
	return err
}

// askInVain has a node be one that was asked in vain for long enough, if this one leads.
func (s *liveness) askInVain(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.round > 0 {
		s.mu.vain[id] = s.dead
	}
}

// end ends a node in some way that runs and has begun: else the cluster may yet hear of
// the start before. It returns the life that is over.
func (r *run) end(i int, end func(*node)) (life uint64, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[i]
	if !n.hasBegun() {
		return 0, false
	}
	life = n.group.config.Self.Life
	end(n)
	return life, true
}

// start starts a node that was ended. What workers there held is for others to take: from
// now on, and before it knows that it has begun.
func (r *run) start(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := time.Since(r.begins).Nanoseconds()
	n := r.nodes[i]
	if err := n.try(false); err != nil {
		r.t.Errorf("node %s does not start again: %v", n.id, err)
		return
	}
	g := n.group
	r.others.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enough)
		defer cancel()
		o := porcupine.Operation{
			ClientId: workers + 1 + i, Input: asked{kind: "begin", worker: i, take: int64(len(r.nodes))},
			Call: call, Output: seen{unknown: true}, Return: 1 << 62,
		}
		if g.Begun(ctx) == nil {
			o.Output, o.Return = seen{}, time.Since(r.begins).Nanoseconds()
		}
		r.log.Lock()
		defer r.log.Unlock()
		r.ops = append(r.ops, o)
	})
}

// enlist has one more node join while clients are at work, another be drained for a
// while, and the new one be removed.
func (r *run) enlist() {
	n := newNode(r.t, 0x40+r.number)
	n.addr = reserve(r.t)
	token := r.nodes[0].token(1)
	at, drained := r.nodes[0].addr, r.nodes[r.random.IntN(len(r.nodes))].id
	random := rand.New(rand.NewPCG(r.seed, uint64(r.number)))
	r.others.Go(func() {
		if !r.until("a node joins", func(ctx context.Context) error {
			_, err := Join(ctx, n.trust(), at, token, n.identity, n.addr, time.Now())
			return err
		}) {
			return
		}
		if err := n.try(false); err != nil {
			r.t.Errorf("a node that joined does not start: %v", err)
			return
		}
		for key := range 3 { // at once: it knows nothing yet
			r.token(workers, n.group, fmt.Sprint(key), fmt.Sprint(random.IntN(3)+1), false)
		}
		for _, c := range []state.Command{&state.Drain{ID: drained, Drained: true}, &state.Drain{ID: drained}, &state.Remove{ID: n.id}} {
			r.until(fmt.Sprintf("%+v", c), func(ctx context.Context) error {
				g, _ := r.at(random.IntN(len(r.nodes)))
				_, err := g.Do(ctx, c)
				return err
			})
		}
		n.stop()
	})
}

// until tries something until it is done: there may be no leader, or none that can do without a
// node. To try is to wait mostly, for a node that was ended meanwhile too; so it is tried again soon.
func (r *run) until(what string, do func(ctx context.Context) error) bool {
	try := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		return do(ctx)
	}
	for deadline := time.Now().Add(enough); ; time.Sleep(quick().pause) {
		err := try()
		if err == nil {
			return true
		}
		if time.Now().After(deadline) {
			r.t.Errorf("%s: %v", what, err)
			return false
		}
	}
}
