package splits

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"rankfs/meta"
)

// A Source is one version of what is looked through. Its splits have numbers from 0 on. What is
// found in one is a function of the version and of nothing else: it is the same at any node.
// Its methods may be called concurrently.
type Source interface {
	// Find looks through a split and writes what the index has to know of it.
	Find(ctx context.Context, split int, w *Findings) error
	// Request says in words of the source's own what another node is to find.
	Request(split int) ([]byte, error)
	// Check says why what another node found cannot be of that split.
	Check(split int, found *Findings) error
}

// A Helper is another node that can look through splits for the index that this node makes.
// Find is given the scheme of a source and a request, and writes what it found to w; after an
// error that may be a part of it. It may be called concurrently, and what it writes is to be
// checked as far as it can be.
type Helper struct {
	Host string
	Find func(ctx context.Context, scheme string, request []byte, w io.Writer) error
}

// A Scan has all splits of a source looked through, here and at other nodes. What was found is
// the same whichever of them do, or none.
type Scan struct {
	Source  Source
	Scheme  string               // of the source: by it another node knows of which its requests are
	Hosts   [][]string           // that hold a split, for each
	Known   func(split int) bool // reports whether a split is not to be looked through
	Here    string               // the name of this host
	Helpers []Helper
	Kept    *Store

	// Missed is told of a split that a helper did not look through, and is now read here: it
	// was slow, or else why. It may be called concurrently.
	Missed func(split int, host string, slow bool, cause error)
}

// readers is how many splits are read at a time here: enough to keep the cores busy while
// disks seek.
func readers() int { return 2 * runtime.NumCPU() }

const (
	asked    = 2                // splits that a node is asked for at a time: half of the connections to it
	restTime = 10 * time.Second // of a node that did not read a split
)

// Each reads all splits, several at a time, and calls merge with what was found in each, in
// order; with nil for splits that are known. Findings of an earlier scan of the same version
// that was interrupted are used again.
func (s *Scan) Each(ctx context.Context, merge func(split int, found *Findings) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unknown []int
	for i := range s.Hosts {
		if !s.Known(i) {
			unknown = append(unknown, i)
		}
	}
	var helpers []Helper
	if len(unknown) > readers() { // else all are read here at once
		helpers = s.Helpers
	}
	d := newDivision(unknown, s.Hosts, 4*(readers()+asked*len(helpers))) // each has a file open
	var work sync.WaitGroup
	for range min(readers(), len(unknown)) {
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
	for i := range s.Hosts {
		var found *Findings
		if !s.Known(i) {
			var err error
			if found, err = d.next(ctx); err != nil {
				return err
			}
		}
		err := merge(i, found)
		found.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// readHere reads splits at this node, until ctx is done.
func (s *Scan) readHere(ctx context.Context, d *division) {
	for {
		i, ok := d.take(ctx, s.Here)
		if !ok {
			return
		}
		found, err := s.Kept.find(i, func(w *Findings) error { return s.Source.Find(ctx, i, w) }, nil)
		d.put(i, result{found, err})
	}
}

// haveRead has another node read splits, until ctx is done or it turns out that this node
// cannot. After a failure that may pass it is left alone for a while.
func (s *Scan) haveRead(ctx context.Context, d *division, node Helper) {
	for {
		asked, i, ok := d.lend(ctx, node.Host)
		if !ok {
			return
		}
		request, err := s.Source.Request(i)
		var found *Findings
		if err == nil {
			found, err = s.Kept.find(i, func(w *Findings) error { return node.Find(asked, s.Scheme, request, w.out) },
				func(f *Findings) error { return s.Source.Check(i, f) })
		}
		if err == nil {
			d.put(i, result{found, nil})
			continue
		}
		slow := asked.Err() != nil
		d.giveBack(i)
		if ctx.Err() != nil {
			return
		}
		s.Missed(i, node.Host, slow, err)
		if !slow && !errors.Is(err, meta.ErrBusy) && !errors.Is(err, meta.ErrUnavailable) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restTime):
		}
	}
}
