package cache

import "time"

// An epoch is the readers of one plan. The cache's lock guards it.
type epoch struct {
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
func (ep *epoch) usage(r *reader) *usage {
	if r.Run >= trusted {
		return &ep.usages[0]
	}
	return &ep.usages[1]
}

// end is how many steps are known: those of the epoch, and of the next one if it is.
func (ep *epoch) end() uint64 {
	if ep.next == nil {
		return ep.plan.Steps()
	}
	return ep.plan.Steps() + ep.next.Steps()
}

// at is where a step is that may be beyond the epoch's end.
func (ep *epoch) at(step uint64) (p Plan, s uint64) {
	if steps := ep.plan.Steps(); step >= steps {
		return ep.next, step - steps
	}
	return ep.plan, step
}

// use is when a reader of ep comes to the batch of k.
func (ep *epoch) use(k Key) (u use, ok bool) {
	if rank, step, is := ep.plan.Find(k); is {
		if r := ep.readers[rank]; r != nil && r.Run >= trusted && step >= r.Pos {
			return use{r, step}, true
		}
	}
	if ep.next == nil {
		return u, false
	}
	if rank, step, is := ep.next.Find(k); is {
		if r := ep.readers[rank]; r != nil && r.Run >= trusted {
			return use{r, ep.plan.Steps() + step}, true
		}
	}
	return u, false
}
