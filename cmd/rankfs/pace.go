package main

import (
	"context"
	"time"

	"rankfs/cmd/internal/control"
)

// How long it is looked at what ranks do, to learn how long they work on a batch.
const (
	paceEvery = 100 * time.Millisecond
	paceIdle  = 10 // looks without an open: nobody reads now
	paceLooks = 50
	paceOpens = 4 // of each rank: then the mean is good enough
)

// pace measures how long the ranks that read now work on a batch: the time
// between their opens, less what these waited. It is zero if nobody reads, or too
// slowly to be seen.
func (p *program) pace(ctx context.Context, d *control.Client, first control.Counters) (seconds float64, err error) {
	if first.Readers == 0 {
		return 0, nil
	}
	begin, every := p.now(), time.NewTicker(paceEvery)
	defer every.Stop()
	for look := range paceLooks {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-every.C:
		}
		s, err := d.Status(ctx)
		if err != nil {
			return 0, err
		}
		took, opens := p.now().Sub(begin).Seconds(), s.Counters.Opens-first.Opens
		switch {
		case s.Counters.Readers != first.Readers:
			return 0, nil // some came or went: the time is not that of so many ranks
		case opens >= paceOpens*uint64(first.Readers):
			work := took*float64(first.Readers) - (s.Counters.WaitSeconds - first.WaitSeconds)
			return max(0, work/float64(opens)), nil
		case opens == 0 && look == paceIdle:
			return 0, nil
		}
	}
	return 0, nil
}
