package main

import "rankfs/cmd/internal/control"

// leastOpens of each rank make a mean that is good enough.
const leastOpens = 4

// pace is how long ranks that read a dataset now work on a batch, in the job that
// was opened last: the time between their opens, less what these waited. It is
// zero if nobody reads, or has read too little yet.
func pace(l control.Load) (seconds float64) {
	for _, j := range l.Jobs {
		ranks, a := uint64(j.Here), j.Total
		if j.Minute.Ranks > 0 && a.Opens >= leastOpens*ranks {
			return max(0, a.RankSeconds-a.Stalled) / float64(a.Opens-ranks) // the time begins with the first opens
		}
	}
	return 0
}
