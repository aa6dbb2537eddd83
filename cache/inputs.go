package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/meta/stall"
)

// inputs has series write batches that are made of inputs, and has the inputs in the cache
// for that. From here down a fill has no inputs: maker makes what is whole.
type inputs struct {
	holds *holds
	maker *maker
}

// write has the series of e write its batch. It stops at each input that it copies from.
func (in *inputs) write(ctx context.Context, e *entry, mem []byte) error {
	for p, err := range e.series.Fill(ctx, e.rank, e.step, mem) {
		if err != nil {
			return err
		}
		in.copy(p, e)
	}
	return nil
}

// copy has a fill copy from an input, for the job whose batch it makes.
func (in *inputs) copy(p Input, of *entry) {
	s, err := in.open(p.Context(), p, of)
	if err != nil {
		p.Copy(nil, "", err)
		return
	}
	defer s.Release()
	p.Copy(s, s.Tier(), nil)
}

// open returns the slab of an input. One that is not there is made on this goroutine: a
// fill that left that to another worker could wait for itself. It never waits for memory,
// as the fill holds some. What it takes is that fill's time, on the account of the job that
// has it, and so is what is made ready ahead of it. There is no such fill if another node
// copies from it.
//
// Inputs that are read in order, one after the other, count as opens of the rank of
// their series, and the next ones are made ready ahead. Of others, as a shuffle copies
// from them, nothing is foretold: they stay by when they were used last.
func (in *inputs) open(ctx context.Context, p Input, of *entry) (*Slab, error) {
	now, k := time.Now(), p.Series.Key(p.Rank, p.Step)
	mu := in.holds.mu
	mu.Lock()
	on := mu.accounts.others
	if of != nil {
		on = of.usage.of
	}
	if mu.life.closed {
		mu.Unlock()
		return nil, fmt.Errorf("input of a batch: %w", errClosing)
	}
	e, mine := mu.slabs.entry(p.Series, k, p.Rank, p.Step)
	var seen move
	if p.InOrder {
		seen = in.holds.follow(e, p.Series, p.Rank, p.Step, on, now)
	}
	if e.state == ready {
		s := in.holds.hold(e)
		mu.Unlock()
		return s, nil
	}
	in.holds.join(e, on.part(seen.expected), mine, stall.Overhead)
	if of != nil {
		e.fills = append(e.fills, of)
	}
	clock := e.clock
	mu.Unlock()
	defer stall.Follow(ctx, clock)() // an open that waits for the batch waits for its input
	if mine {
		in.maker.make(e, false)
	}
	return in.holds.await(ctx, e, of)
}

// writeWhole has the series of e write its batch, which is not made of inputs.
func writeWhole(ctx context.Context, e *entry, mem []byte) (err error) {
	for _, err = range e.series.Fill(ctx, e.rank, e.step, mem) {
		err = cmp.Or(err, errInputOfInputs)
	}
	return err
}

var errInputOfInputs = errors.New("an input of a batch is made of inputs")
