package ahead

import "math"

// Steps is the number of steps ahead of a reader that are worth having: as many as it consumes
// while one is made, from a source of that latency, and one that is read, one that is
// ready and one for what varies. Times are in seconds. What is made at a time bounds
// it: more would only be ready earlier.
func Steps(latency, pace float64, fills int) int64 {
	const minBound = 16 // what comes in bursts has so many, however few are made at a time
	want := 3.0
	if pace > 0 {
		want += math.Floor(latency / pace)
	}
	return int64(math.Min(want, float64(max(minBound, 2*fills))))
}

// MaxFills bounds how many fills are done at a time: what is made takes memory and a
// source's patience. A source of 100 ms gives 640 batches a second then.
const MaxFills = 64

// Fills is the number of fills that are worth doing at a time. It is found by trial: where fills
// are waited for, half as many more are done for a while, and remain if that gives
// enough more bytes a second; now and then fewer are tried. So a far source has many,
// and one whose rate, or a processor, is used up has no more than before.
type Fills struct {
	min int
	n   int // at a time
	was int // before the trial; n if there is none

	began    float64 // of what is counted now, in seconds
	done     int     // below zero: so many of before are still to end
	backlog  int     // of done, fills that had waited for a worker
	bytes    float64
	best     float64 // bytes a second with so many
	rest     int     // periods until the next trial
	patience int     // periods of rest after a trial that fails
	fewer    bool    // are tried next
}

// New begins with the least of fills at a time.
func New(min int) Fills { return Fills{min: min, n: min, was: min, patience: 1} }

// AtOnce is the number of fills that may be done at a time.
func (f *Fills) AtOnce() int { return f.n }

// Done counts a fill that ended now, in seconds, and whether it had waited for a
// worker.
func (f *Fills) Done(now, bytes float64, waited bool) {
	if f.done++; f.done < 0 {
		return
	}
	if f.done == 0 {
		f.began = now
		return
	}
	f.bytes += bytes
	if waited {
		f.backlog++
	}
	if f.done < 2*f.n+4 {
		return
	}
	rate := f.bytes / math.Max(now-f.began, 1e-9)
	lacks := f.backlog*4 >= f.done // fills end by bursts, between which some are idle
	f.began, f.done, f.backlog, f.bytes = now, 0, 0, 0
	f.judge(rate, lacks)
}

// maxPatience bounds how long trials rest, in periods.
const maxPatience = 64

// judge ends a period.
func (f *Fills) judge(rate float64, lacks bool) {
	switch trial := f.n != f.was; {
	case !lacks && f.n > f.was && rate <= f.best: // less was wanted: that says nothing of more at a time
		f.n, f.rest = f.was, 0
	case !lacks: // whatever is wanted is done
		f.was, f.rest = f.n, 0
	case trial && rate >= f.best*(1+(float64(f.n)/float64(f.was)-1)/4): // a fourth of what so many more could give
		if f.n > f.was {
			f.patience = 1
		}
		f.best = rate
		f.try()
	case trial:
		f.n, f.rest, f.patience = f.was, f.patience, min(2*f.patience, maxPatience)
		f.fewer = !f.fewer
	case f.rest > 0:
		f.best = rate
		f.rest--
	default:
		f.best = max(f.best, rate) // a period in which little was wanted says little
		f.try()
	}
}

// try begins a trial of more or of fewer.
func (f *Fills) try() {
	f.was, f.done = f.n, -f.n
	if f.fewer {
		f.n = max(f.min, f.n-f.n/3)
		if f.n == f.was {
			f.fewer = false
		}
	}
	if !f.fewer {
		f.n = max(f.n, min(f.n+max(1, f.n/2), MaxFills))
	}
}
