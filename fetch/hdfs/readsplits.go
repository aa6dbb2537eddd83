package hdfs

import (
	"context"
	"runtime"
	"sync"

	"rankfs/fetch/index"
)

// scanners is how many splits are read at a time: enough to keep the cores busy
// while datanodes seek.
func scanners() int { return 2 * runtime.NumCPU() }

// each reads all splits, several at a time, here and at other nodes, and calls merge
// with the findings of each, in order; without any for splits that are known. Findings of
// an earlier scan of the same version that was interrupted are used again.
func (s *scan) each(ctx context.Context, merge func(p split, r *findings) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unknown []split
	for _, p := range s.splits {
		if _, ok := s.known[p.number]; !ok {
			unknown = append(unknown, p)
		}
	}
	var helpers []index.Helper
	if len(unknown) > scanners() { // else all are read here at once
		helpers = s.source.helpers
	}
	d := newDivision(unknown, 4*(scanners()+asked*len(helpers))) // each has a file open
	var work sync.WaitGroup
	for range min(scanners(), len(unknown)) {
		work.Go(func() { s.readHere(ctx, d) })
	}
	for _, h := range helpers {
		for range asked {
			work.Go(func() { s.haveRead(ctx, d, h) })
		}
	}
	defer d.close()
	defer work.Wait()
	defer cancel()
	read := int64(0)
	for _, p := range s.splits {
		var found *findings
		if _, ok := s.known[p.number]; !ok {
			var err error
			if found, err = d.next(ctx); err != nil {
				return err
			}
		}
		err := merge(p, found)
		found.close()
		if err != nil {
			return err
		}
		read += p.to - p.from
		s.done(read, s.total)
	}
	return nil
}

// readHere reads splits at this node, until ctx is done.
func (s *scan) readHere(ctx context.Context, d *division) {
	for {
		p, ok := d.take(ctx, s.source.clusters.host)
		if !ok {
			return
		}
		found, err := s.find(p, func(w *findings) error { return s.source.form.find(ctx, s, p, w) }, nil)
		d.put(p, result{found, err})
	}
}
