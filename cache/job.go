package cache

import "time"

// A job is the readers of one plan.
type job struct {
	plan    Plan
	readers map[uint64]*reader // by rank
	next    Plan               // of the epoch after this one; nil if that is not known
	asked   bool               // next was asked for
	usages  [2]usage           // of workers, for what readers in order need, and for what else is opened
}

// A usage is an account of workers' time. What was not used in the past is not saved
// up: it starts no earlier than that of the account that was served last.
type usage struct{ end time.Duration }

// usage is the account of what is made ready for r.
func (j *job) usage(r *reader) *usage {
	if r.Run >= trusted {
		return &j.usages[0]
	}
	return &j.usages[1]
}

// end is how many steps are known: those of the epoch, and of the next one if it is.
func (j *job) end() uint64 {
	if j.next == nil {
		return j.plan.Steps()
	}
	return j.plan.Steps() + j.next.Steps()
}

// at is where a step is that may be beyond the epoch's end.
func (j *job) at(step uint64) (p Plan, s uint64) {
	if steps := j.plan.Steps(); step >= steps {
		return j.next, step - steps
	}
	return j.plan, step
}

// use is when a reader of j comes to the batch of k.
func (j *job) use(k Key) (u use, ok bool) {
	if rank, step, is := j.plan.Find(k); is {
		if r := j.readers[rank]; r != nil && r.Run >= trusted && step >= r.Pos {
			return use{r, step}, true
		}
	}
	if j.next == nil {
		return u, false
	}
	if rank, step, is := j.next.Find(k); is {
		if r := j.readers[rank]; r != nil && r.Run >= trusted {
			return use{r, j.plan.Steps() + step}, true
		}
	}
	return u, false
}
