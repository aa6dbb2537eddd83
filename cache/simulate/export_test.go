package simulate

import (
	"context"
	"fmt"
	"math"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// RunChecked is Run with every invariant checked after every event.
func RunChecked(s Scenario, by func() policy.Policy) (Outcome, error) {
	r, err := newSimulation(s, by)
	if err != nil {
		return Outcome{}, err
	}
	last, events := 0.0, 0
	var broken error
	r.watch = func(r *simulation) {
		if r.clock.now < last {
			broken = fmt.Errorf("time went from %v to %v", last, r.clock.now)
		}
		last, events = r.clock.now, events+1
		if e := r.broken(); e != nil && broken == nil {
			broken = fmt.Errorf("at %v, event %d: %w", last, events, e)
		}
	}
	if err := r.run(context.Background()); err != nil {
		return Outcome{}, err
	}
	if broken == nil {
		broken = r.left()
	}
	return r.out, broken
}

func (r *simulation) broken() error {
	for i := range r.nodes {
		n := &r.nodes[i]
		if err := r.adds(n); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		if err := r.linked(n); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	for i, s := range r.servers {
		if sum := s.speed() * float64(len(s.queue)); len(s.queue) > 0 && sum > s.rate*(1+1e-9) {
			return fmt.Errorf("server %d gives %v of %v", i, sum, s.rate)
		}
	}
	return nil
}

// adds compares what a node uses with what is there.
func (r *simulation) adds(n *node) error {
	var memory, disk, loads int64
	for i := range n.items {
		it, g := &n.items[i], &n.guard[i]
		if it.Now == policy.Disk {
			disk += it.Bytes[it.Now]
		} else {
			memory += it.Bytes[it.Now]
		}
		if g.held < 0 {
			return fmt.Errorf("item %d is held by %d", i, g.held)
		}
		if g.loading {
			loads += it.Bytes[policy.RAM]
		}
	}
	for i := range r.readers {
		k := &r.readers[i]
		for j := range k.ready {
			if b := &k.ready[j]; k.node == n {
				memory += b.own
			}
		}
	}
	for i := range r.chains {
		c := &r.chains[i]
		if c.whole && c.owner == n && (c.doing == asking || c.doing == loading || c.doing == unpacking) {
			loads -= c.reader.batch(c.step).own // of what is loading, too
		}
		if c.doing == moving && c.owner == n {
			if c.to == policy.Disk {
				disk += n.items[c.item].Bytes[c.to]
			} else {
				memory += n.items[c.item].Bytes[c.to]
			}
		}
	}
	switch memory += loads; {
	case memory != n.memory || disk != n.disk:
		return fmt.Errorf("uses %d and %d bytes, by its books %d and %d", memory, disk, n.memory, n.disk)
	case memory > r.s.Memory || disk > r.s.Disk:
		return fmt.Errorf("uses %d of %d and %d of %d bytes", memory, r.s.Memory, disk, r.s.Disk)
	case n.workers > n.crew || n.crew < r.s.Workers || n.crew > max(r.s.Workers, ahead.MaxFills):
		return fmt.Errorf("%d workers of %d are free, %d are there always", n.workers, n.crew, r.s.Workers)
	}
	return nil
}

func (r *simulation) linked(n *node) error {
	for _, link := range [][]int32{n.in, n.out} {
		sum := 0.0
		for _, id := range link {
			sum += r.chains[id].link.rate
		}
		if len(link) > 0 && sum > r.s.Costs.Link*(1+1e-9) {
			return fmt.Errorf("link carries %v of %v", sum, r.s.Costs.Link)
		}
	}
	return nil
}

// left reports what a run that is over has not given back.
func (r *simulation) left() error {
	moved := float64(0)
	for _, e := range r.out.Epochs {
		moved += float64(e.Fetched)
	}
	rest := 0.0
	for _, t := range r.source.queue {
		rest += t.until - r.source.advanced
	}
	if math.Abs(r.source.moved+rest-moved) > 1e-6*moved+1 {
		return fmt.Errorf("the source sent %v bytes and has %v to send, of %v that were asked for", r.source.moved, rest, moved)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.demand.len()+n.room.len() > 0 || n.readers > 0 {
			return fmt.Errorf("node %d: a reader waits", i)
		}
	}
	return nil
}

// Uses are the uses of all epochs in order; of a partition in a batch there is one.
func (s Scenario) Uses() (all []int32) {
	s, err := s.withDefaults()
	if err != nil {
		panic(err)
	}
	f := newFuture(&s)
	for epoch := range int64(s.Epochs) {
		if epoch > 0 {
			f.goOn()
		}
		for step := epoch * f.steps; step < (epoch+1)*f.steps; step++ {
			for rank := range int32(s.ranks()) {
				from := len(all)
				f.batch(rank, step, func(p int32, _ int64) { all = append(all, p) })
				all = distinct(all, from)
			}
		}
	}
	return all
}

// distinct leaves one of each from a place on.
func distinct(all []int32, from int) []int32 {
	seen, kept := make(map[int32]bool, len(all)-from), all[:from]
	for _, p := range all[from:] {
		if !seen[p] {
			seen[p] = true
			kept = append(kept, p)
		}
	}
	return kept
}
