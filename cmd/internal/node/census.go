package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// Bounds of what is looked at, so that a person waits for seconds at most.
const (
	mostSteps     = 4096
	mostPositions = 1 << 22 // each is looked up in the index: 2.6 s for an order=full of 128 ranks
)

// sample chooses the steps to look at: all, or some at equal distances.
func sample(c meta.Cut) []uint64 {
	size := max(1, min(c.Global, c.N), c.Ranks)
	steps := c.Steps()
	picks := make([]uint64, min(steps, mostSteps, max(1, mostPositions/size)))
	n := uint64(len(picks))
	for i := range n {
		picks[i] = i*(steps/n) + i*(steps%n)/n
	}
	return picks
}

// survey adds up what the ranks read in an epoch, as they sit and as it would be
// were they fixed.
func (n *Node) survey(ctx context.Context, v meta.View, d *dataset, seats []seat, p *control.Plan) error {
	hosts, hostOf := number(seats)
	k := census{hostOf: hostOf, hosts: len(hosts), held: d.content.holdings(hosts)}
	planned := newPlan(v, d.content, n.sizes)
	if size := min(planned.cut.Global, planned.cut.N); size > mostPositions {
		return fmt.Errorf("steps of %d records %w to count: use at most %d", size, meta.ErrInvalid, mostPositions)
	}
	steps := sample(planned.cut)
	p.Steps, p.Looked = planned.cut.Steps(), uint64(len(steps))
	fixed, err := k.take(ctx, planned, steps) // nothing is placed yet
	if err != nil {
		return err
	}
	chosen := fixed
	if d.content.remote {
		err = planned.place(seats)
	}
	if err == nil && planned.placement != nil {
		chosen, err = k.take(ctx, planned, steps)
	}
	p.Nodes = make([]control.Reads, len(hosts))
	for host, i := range hosts {
		p.Nodes[i] = control.Reads{Host: host, Bytes: chosen.bytes[i], Local: chosen.local[i], Strict: fixed.local[i]}
	}
	for _, i := range hostOf {
		p.Nodes[i].Ranks++
	}
	p.Plan, p.Strict = chosen.share(), fixed.share()
	return err
}

// A census counts what the ranks on each host read.
type census struct {
	hosts  int
	hostOf []int32 // of each rank
	held   holdings
}

// A tally is the outcome of a census.
type tally struct {
	bytes, local []int64 // by host
	ranks        []int64 // bytes of each
}

func (k census) take(ctx context.Context, p *plan, steps []uint64) (tally, error) {
	t := tally{make([]int64, k.hosts), make([]int64, k.hosts), make([]int64, len(k.hostOf))}
	for _, step := range steps {
		for rank := range p.cut.Ranks {
			if err := k.count(ctx, p, rank, step, t); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// count adds one batch.
func (k census) count(ctx context.Context, p *plan, rank, step uint64, t tally) error {
	host, x := k.hostOf[rank], p.content.index
	add := func(chunk int, bytes int64) {
		t.bytes[host] += bytes
		t.ranks[rank] += bytes
		if slices.Contains(k.held.sets[k.held.setOf[chunk]], host) {
			t.local[host] += bytes
		}
	}
	if p.view.Step.Unit == meta.UnitChunk {
		r, err := p.run(rank, step)
		for i := range r.n {
			c := int(p.order.At(r.at(i) % p.cut.N))
			add(c, x.Chunk(c).Bytes)
		}
		return errors.Join(err, ctx.Err())
	}
	return p.each(rank, step, func(g *handful) error {
		for _, r := range g.records {
			add(x.ChunkOf(r), x.Size(r))
		}
		return ctx.Err()
	})
}

func (t tally) share() control.Share {
	var bytes, local int64
	for i := range t.bytes {
		bytes, local = bytes+t.bytes[i], local+t.local[i]
	}
	if bytes == 0 {
		return control.Share{Local: 1, Balance: 1}
	}
	return control.Share{
		Local:   float64(local) / float64(bytes),
		Balance: float64(slices.Max(t.ranks)) * float64(len(t.ranks)) / float64(bytes),
	}
}
