package cache

import "time"

// A usage is an account of workers' time: of all, of a job, or of one of the two parts of
// what a job opens. What was not used in the past is not saved up: it starts no earlier
// than the one beside it that was served last. A fill that goes on counts for as long as
// it has taken.
type usage struct {
	of     *usage        // what it is a part of; nil: it is all there is
	parts  *[2]usage     // of a job: for what readers in order need, and for what else is opened
	clock  time.Duration // where the one of its parts started that was served last
	end    time.Duration // what was used, but for what goes on
	busy   int           // workers that fill for it
	active int           // of its parts, those that have such
	begun  time.Duration // when these began, added up
	rate   float64       // by how many times what is used counts: one by a job's weight
	weight float64       // of its active parts, together
}

// accounts are those that are there whichever jobs are; that of a job is its tenant's. The cache's
// lock guards them.
type accounts struct {
	all    usage  // of all jobs
	others *usage // by opens that are followed no more, and for what no job asks for
}

// newJob is the account of one more job.
func newJob(all *usage) *usage {
	u := &usage{of: all, parts: new([2]usage), rate: 1}
	for i := range u.parts {
		u.parts[i].of, u.parts[i].rate = u, 1
	}
	return u
}

// part is the part of a job for an open, or for what is ahead of a reader, which goes in order
// or does not.
func (u *usage) part(inOrder bool) *usage {
	if inOrder {
		return &u.parts[0]
	}
	return &u.parts[1]
}

func (u *usage) used(now time.Duration) time.Duration {
	return u.end + u.counts(time.Duration(u.busy)*now-u.begun)
}

// counts is the share that so much of workers' time uses.
func (u *usage) counts(d time.Duration) time.Duration { return time.Duration(float64(d) * u.rate) }

// weigh has what is used from now on count by a weight, unless something is filled for it.
func (u *usage) weigh(weight float64) {
	if u.busy == 0 {
		u.rate = 1 / weight
	}
}

// start is the time from which work for it would count now.
func (u *usage) start(now time.Duration) time.Duration { return max(u.of.clock, u.used(now)) }

// begin has a worker begin to fill for it.
func (u *usage) begin(now time.Duration) {
	for ; u.of != nil; u = u.of {
		u.of.clock = u.start(now)
		u.end += u.of.clock - u.used(now)
		if u.busy == 0 {
			u.of.active++
			u.of.weight += 1 / u.rate
		}
		u.busy, u.begun = u.busy+1, u.begun+now
	}
	u.busy++
}

// done ends what began then.
func (u *usage) done(began, now time.Duration) {
	for ; u.of != nil; u = u.of {
		u.busy, u.begun, u.end = u.busy-1, u.begun-began, u.end+u.counts(now-began)
		if u.busy == 0 {
			u.of.active--
			if u.of.weight -= 1 / u.rate; u.of.active == 0 {
				u.of.weight = 0 // and nothing by rounding
			}
		}
	}
	u.busy--
}

// A charge says for whom a worker works, and since when.
type charge struct {
	usage *usage // nil: it is over
	began time.Duration
}
