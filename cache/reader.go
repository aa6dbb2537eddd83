package cache

import (
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/trace"
)

// A reader is one rank going through a series, as its opens show it. Its steps
// count on into the next epoch: those of that one begin at the Steps of the series.
//
// It is moved by its opens alone.
type reader struct {
	ahead.Cursor
	rank       uint64
	size       int64     // of a batch, as last seen; zero if none was ready yet
	activeSpan           // from its first step, in this epoch or one before, to the last one opened
	served     time.Time // when an open that waited was answered
	usage      *usage    // of the job that it is of
	stray      uint64    // the step after one that was opened a little behind here
	opened     uint32    // which of the steps before Pos were opened, the last one first
	others     marks     // and after those far from here: an open of one of these is another reader's
	tempo      tempo
	course     course
	heap       uint8  // of idle batches: what it comes to is there, in order
	route      *route // if it is one
}

// A route is a reader that follows no order, but of which was learnt when it opens
// again what it has opened. It is as if it went through steps in order: its opens,
// counted, and what it comes to is due at one of them. So it is placed, compared
// and late like any other reader. The cache's lock guards it.
type route struct {
	reader
	series *Series
	graph  *trace.Graph
	opened []uint32 // by step of the series: at which open that was last; zero: never
	due    []uint32 // and at which it will be again: unknown, never, or that, with a mark if it is not sure
	steps  []uint32 // by open, modulo twice the steps: which is due; of two the sooner
	trust  int      // believed while above zero
}

// A use is that a reader comes to a batch, at which of its steps: in this epoch, or
// in the one after it.
type use struct {
	reader *reader
	step   uint64
}

// distance is the number of steps between where r is and another, less if r may have gone on to it than
// if it went back; none if it is too far. A reader that is not trusted yet may be anywhere.
func (r *reader) distance(step, near uint64) uint64 {
	switch {
	case step >= r.Pos && step-r.Pos < near:
		return step - r.Pos
	case step < r.Pos && r.Pos-step <= near:
		return near + r.Pos - step
	case r.Run < trusted:
		return none - 1
	}
	return none
}

const none = ^uint64(0)

// opens moves a reader to the step that it opens. An open far from the reader's
// position does not: an open of the next step after it is another reader's, of a job that
// resumed there or of one that reads the same. Nor does one of a step that it has had: it
// is of another that reads the same, close behind. So stray opens by other processes, as by
// a person who browses, do not stop a job's batches from being made ready ahead.
func (r *reader) opens(step, near uint64, c *confidence, now time.Time) (moved, expected bool) {
	switch {
	case step >= r.Pos && step-r.Pos < near:
		if r.Run > 0 {
			took := now.Sub(r.seen) / time.Duration(step+1-r.Pos)
			r.Took((r.worked(now) / time.Duration(step+1-r.Pos)).Seconds())
			r.tempo.add(took)
		}
		if r.Run = max(min(r.Run, 1), r.Run+1-int(step-r.Pos)); r.Run == proven {
			c.proves()
		}
	case r.had(step): // another that reads the same, a little behind
		r.others.note(step+1, now)
		return false, true
	case step == r.stray || r.Run < trusted:
		r.others.note(r.Pos, r.seen) // it may be another that opens this
		r.Cursor, r.tempo, r.opened = ahead.Cursor{Run: c.after(r.Cursor, step)}, tempo{}, 0
	case step < r.Pos && r.Pos-step <= near: // one of a rank's several workers is a little late
		r.stray = step + 1
		r.opened |= 1 << (r.Pos - step - 1)
		r.Run++
		return false, true
	default:
		r.others.note(step+1, now)
		return false, false
	}
	r.opened = r.opened<<(step+1-r.Pos) | 1
	r.Open(step)
	r.seen, r.stray = now, none
	return true, true
}

// had reports whether r has opened a step, a little before the one where it is.
func (r *reader) had(step uint64) bool {
	return step < r.Pos && r.opened>>(r.Pos-step-1)&1 > 0
}

// worked is the time since a reader got what it opened last.
func (r *reader) worked(now time.Time) time.Duration {
	if r.served.After(r.seen) {
		return max(now.Sub(r.served), 0)
	}
	return now.Sub(r.seen)
}

// A tempo is a reader's mean time from one step to the next, pauses left out, and what these
// add to it over many steps.
type tempo struct {
	mean   time.Duration
	count  int           // of steps, up to tempoSteps
	rested time.Duration // in the last pauses, beyond what so many steps take
	before int           // steps that were taken up to the last of them, since about as many pauses
	since  int           // and after it
}

const (
	// tempoSteps is over how many steps a tempo goes: a reader that becomes
	// faster or slower is known by it after about as many.
	tempoSteps = 64

	// pauses: a step that takes longer than so many tempos is a pause, such as
	// at the end of an epoch or for a checkpoint, and says little of the next step.
	pauses = 4

	// tempoPauses is over about how many pauses it goes what they add.
	tempoPauses = 8
)

func (t *tempo) add(took time.Duration) {
	t.since++
	if most := pauses*t.mean + 1; t.count >= pauses && took > most {
		t.rested += took - most - t.rested/tempoPauses
		t.before += t.since - t.before/tempoPauses
		t.since, took = 0, most
	}
	t.count = min(t.count+1, tempoSteps)
	t.mean += (took - t.mean) / time.Duration(t.count)
}

// pace is the mean of a step over many steps, with the pauses among them.
func (t *tempo) pace() time.Duration {
	return t.mean + t.rested/time.Duration(max(1, t.before+t.since))
}

// comes is the time at which r comes to a step: the next one by its tempo, and others as long after that
// as so many steps take. One that is late comes to all of them later; one that rests is expected
// to be silent for as long again.
func (r *reader) comes(step uint64, now time.Time) time.Time {
	ahead := time.Duration(int64(step)-int64(r.Pos)) * r.tempo.pace()
	at, late := r.seen.Add(r.tempo.mean+ahead), now.Add(ahead)
	if r.rests(now) {
		late = late.Add(now.Sub(r.seen))
	}
	if late.After(at) {
		return late
	}
	return at
}

// A course is when a reader comes to which step, as it was reckoned once: one a
// tick. Its batches are in order by it, which is right among themselves however
// the reader goes on; to compare them with others', see reader.comes.
type course struct {
	from time.Time
	step int64 // that it opened then; below zero: of the epoch before
	tick time.Duration
}

func (c course) at(step uint64) time.Time {
	return c.from.Add(time.Duration(int64(step)-c.step) * c.tick)
}

// set reckons the course anew.
func (r *reader) set(now time.Time) {
	r.course = course{r.comes(r.Pos, now), int64(r.Pos), r.tempo.pace()}
}
