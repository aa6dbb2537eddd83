package group

import (
	"context"
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
	switch r.random.IntN(12) {
	case 0, 1:
		r.net.isolate(r.nodes[i].id, r.nodes...)
	case 2:
		r.net.cut(r.nodes[i].id, r.nodes[j].id)
	case 3:
		for k, n := range r.nodes { // the leader, if one is known
			if g, _ := r.at(k); g.Leads() {
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
		r.nodes[i].disk.fail(faults[r.random.IntN(len(faults))], r.random.IntN(2) == 0)
	default:
		r.heal()
	}
}

// restart ends a node in some way and starts it again, with a disk that is well. What
// workers there held is for others to take: from sometime after it was ended on, and
// before it knows that it has begun.
func (r *run) restart(i int, end func(*node)) {
	if !r.begun(i) {
		return // the cluster may yet hear of the start before
	}
	r.mu.Lock()
	n := r.nodes[i]
	end(n)
	call := time.Since(r.begins).Nanoseconds()
	n.start(false)
	g := n.group
	r.mu.Unlock()
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

// until tries something until it is done: nobody may lead, or not do without a node.
func (r *run) until(what string, do func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	defer cancel()
	err := eventually.Until(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return do(ctx)
	})
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
	return err == nil
}
