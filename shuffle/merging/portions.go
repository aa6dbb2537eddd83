package merging

import (
	"context"
	"errors"
	"sync"

	"rankfs/shuffle/record"
)

// Pieces that memory has no room for at once are merged in portions. A piece has one sum, so
// its portions are known to be right when the last has come: until then nothing is read that is
// made of them. If they are not, the copies that they came of are looked at, and all begins
// anew without those that are damaged. A node that fails in the middle of a piece does no such
// harm: another one that has a copy goes on where it has ended.

// inPortions calls f with runs whose pieces come in portions, as inRuns does.
func (p *merger) inPortions(ctx context.Context, of [][]stretch, here held, f func(runs []record.Run) error) error {
	size := p.on.room.portion(len(of))
	give, err := p.hold(ctx, portionsEach*size*int64(len(of)))
	if err != nil {
		return err
	}
	defer give()
	done, err := p.work(ctx, lengthOfAll(of))
	if err != nil {
		return err
	}
	defer done()
	failed := new(Failures)
	for {
		err := p.portioned(ctx, size, of, here, failed, f)
		var bad *badPiece
		if !errors.As(err, &bad) || ctx.Err() != nil {
			return err
		}
		bad.find(ctx, failed)
	}
}

// lengthOfAll is the number of bytes of the pieces of some runs.
func lengthOfAll(of [][]stretch) (n int64) {
	for _, run := range of {
		for _, s := range run {
			n += s.piece().Size
		}
	}
	return n
}

// portioned is one try of inPortions.
func (p *merger) portioned(ctx context.Context, size int64, of [][]stretch, here held, failed *Failures, f func(runs []record.Run) error) error {
	ctx, cancel := context.WithCancel(ctx)
	each := portionsEach * roomOf(size)
	b, err := p.memory(each * int64(len(of)))
	if err != nil {
		cancel()
		return err
	}
	all := &streams{of: make([]*stream, len(of)), queue: make(chan *stream, len(of))}
	defer func() {
		cancel()
		all.end()
		free(b)
	}()
	runs := make([]record.Run, len(of))
	for i, some := range of {
		all.of[i] = newStream(feed{ctx, p, failed}, some, here, size, b[each*int64(i):each*int64(i+1)], all.queue)
		runs[i].Map, runs[i].More = some[0].of.Is().Map(some[0].i), all.of[i].more
	}
	all.begin()
	err = p.guard(func() error { return f(runs) })
	// What was not looked at may be damaged, and be why f has failed.
	if late := all.drain(); late != nil {
		return late
	}
	return err
}

// maxFetched is how many portions a merge fetches at a time.
const maxFetched = 16

// streams are the runs of a merge. Some portions are fetched at a time, of each run one at
// most.
type streams struct {
	of    []*stream
	queue chan *stream
	work  sync.WaitGroup
}

func (all *streams) begin() {
	for range min(maxFetched, len(all.of)) {
		all.work.Go(func() {
			for s := range all.queue {
				s.came <- s.fetch()
			}
		})
	}
	for _, s := range all.of {
		s.start()
	}
}

// drain has the rest of all runs come, which are right if there is no error.
func (all *streams) drain() error {
	for _, s := range all.of {
		if s.err != nil {
			return s.err
		}
	}
	for _, s := range all.of {
		if err := s.drain(); err != nil {
			return err
		}
	}
	return nil
}

// end waits for what is under way, and that no run waits for any more.
func (all *streams) end() {
	close(all.queue)
	all.work.Wait()
	for _, s := range all.of {
		s.close()
	}
}
