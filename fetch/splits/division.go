package splits

import (
	"context"
	"slices"
	"sync"
	"time"

	"rankfs/meta"
)

// overdue is how long another node may have a split before it is read here too, if there
// is nothing else to read. A node reads 128 MiB in about a second.
const overdue = 5 * time.Second

// A division hands out the splits of a source to readers, at this node and for
// others, and gives their findings to the one that merges them, in order. Splits go
// by their numbers in the source.
//
// A split is handed out once, but for two reasons: another node did not read it, or has
// had it for long while no reader here has anything else to read. Then it is read here, and
// what is found first counts. So the end of a scan depends on no other node.
//
// No more than ahead splits are handed out and not merged. Its methods may be called
// concurrently. The lock guards where each split is; a caller takes moved under it and waits
// without it.
type division struct {
	unknown []int      // the splits that are to be read
	hosts   [][]string // of all splits of the source
	ahead   int

	mu struct {
		sync.Mutex
		merged   int                // so many of unknown are merged
		seen     int                // so many were handed out, or are waiting
		waiting  []int              // to be read by any node
		returned []int              // to be read here: another node did not
		away     map[int]*lentSplit // at other nodes
		found    map[int]result
		moved    chan struct{} // closed when anything of this changes
	}
}

// A result has the findings of a split, or the error.
type result struct {
	found *Findings
	err   error
}

// A lentSplit is a split that another node reads.
type lentSplit struct {
	since  time.Time
	here   bool // it is read here too
	cancel context.CancelFunc
}

func newDivision(unknown []int, hosts [][]string, ahead int) *division {
	d := &division{unknown: unknown, hosts: hosts, ahead: ahead}
	d.mu.away, d.mu.found = make(map[int]*lentSplit), make(map[int]result)
	d.mu.moved = make(chan struct{})
	return d
}

// take waits for a split to read at this node, one that it holds if there is such a one.
// It returns false when ctx is done.
func (d *division) take(ctx context.Context, host string) (i int, ok bool) {
	for {
		d.mu.Lock()
		i, wait, ok := d.pickHere(host)
		moved := d.mu.moved
		d.mu.Unlock()
		if ok {
			return i, true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-moved:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return 0, false
		}
	}
}

// lend waits for a split that another node is to read, one that it holds if there is such
// a one. The context is done when the split is wanted of it no longer. It returns false
// when ctx is done.
func (d *division) lend(ctx context.Context, host string) (asked context.Context, i int, ok bool) {
	for {
		d.mu.Lock()
		i, ok := d.pick(host)
		if ok {
			asked, cancel := context.WithCancel(ctx)
			d.mu.away[i] = &lentSplit{since: time.Now(), cancel: cancel}
			d.mu.Unlock()
			return asked, i, true
		}
		moved := d.mu.moved
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, 0, false
		case <-moved:
		}
	}
}

// pickHere takes a split to read at this node; if there is none, it says how long it may
// take until one is overdue. mu is held, as for all that pick.
func (d *division) pickHere(host string) (i int, wait time.Duration, ok bool) {
	if m := &d.mu; len(m.returned) > 0 {
		i, m.returned = m.returned[0], m.returned[1:]
		return i, 0, true
	}
	if i, ok = d.pick(host); ok {
		return i, 0, true
	}
	return d.pickLate()
}

// pick takes one of the splits that wait: the first of those that the host holds, or else
// the first.
func (d *division) pick(host string) (i int, ok bool) {
	m := &d.mu
	for ; m.seen < min(len(d.unknown), m.merged+d.ahead); m.seen++ {
		m.waiting = append(m.waiting, d.unknown[m.seen])
	}
	if len(m.waiting) == 0 {
		return 0, false
	}
	at := slices.IndexFunc(m.waiting, func(i int) bool {
		return slices.ContainsFunc(d.hosts[i], func(h string) bool { return meta.SameHost(h, host) })
	})
	at = max(at, 0)
	i = m.waiting[at]
	m.waiting = slices.Delete(m.waiting, at, at+1)
	return i, true
}

// pickLate takes the first split that is overdue at another node and not read here yet.
func (d *division) pickLate() (i int, wait time.Duration, ok bool) {
	i, wait = len(d.hosts), overdue
	for n, e := range d.mu.away {
		if left := overdue - time.Since(e.since); e.here {
			continue
		} else if left > 0 {
			wait = min(wait, left)
		} else if n < i {
			i, ok = n, true
		}
	}
	if ok {
		d.mu.away[i].here = true
	}
	return i, wait, ok
}

// put takes in what was found in a split, if nothing was before.
func (d *division) put(i int, r result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.mu.away[i]; e != nil {
		e.cancel()
		delete(d.mu.away, i)
	}
	if _, twice := d.mu.found[i]; twice || d.isMerged(i) {
		r.found.close()
		return
	}
	d.mu.found[i] = r
	d.move()
}

// isMerged reports whether a split is merged. mu is held.
func (d *division) isMerged(i int) bool {
	n := d.mu.merged
	return n == len(d.unknown) || i < d.unknown[n]
}

// giveBack has a split read here that another node has not read.
func (d *division) giveBack(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.mu.away[i]
	if e == nil {
		return
	}
	e.cancel()
	delete(d.mu.away, i)
	if !e.here {
		d.mu.returned = append(d.mu.returned, i)
		slices.Sort(d.mu.returned)
	}
	d.move()
}

// move wakes all that wait. mu is held.
func (d *division) move() {
	close(d.mu.moved)
	d.mu.moved = make(chan struct{})
}

// next waits for what was found in the next split, which is merged from then on.
func (d *division) next(ctx context.Context) (*Findings, error) {
	for {
		d.mu.Lock()
		i := d.unknown[d.mu.merged]
		r, ok := d.mu.found[i]
		if ok {
			delete(d.mu.found, i)
			d.mu.merged++
			d.move()
		}
		moved := d.mu.moved
		d.mu.Unlock()
		if ok {
			return r.found, r.err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-moved:
		}
	}
}

// close closes findings that were not merged. Nothing is read any more.
func (d *division) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.mu.found {
		r.found.close()
	}
}
