package forecast

import "rankfs/cmd/internal/control"

// minOpens of each rank make a mean that is good enough.
const minOpens = 4

// WantsPace reports whether the time of a step has to be measured.
func (j *Job) WantsPace() bool { return j.step == 0 }

// Observe takes the time of a step from ranks that read the dataset now.
func (j *Job) Observe(l control.Load) { j.pace = pace(l) }

// pace is the time that ranks which read a dataset now work on a batch, in the job that
// was opened last: the time between their opens, less what these waited. It is
// zero if no rank reads, or none has read enough yet.
func pace(l control.Load) (seconds float64) {
	for _, j := range l.Jobs {
		ranks, a := uint64(j.Here), j.Total
		if j.Minute.Ranks > 0 && a.Opens >= minOpens*ranks {
			return max(0, a.RankSeconds-a.Stalled) / float64(a.Opens-ranks) // the time begins with the first opens
		}
	}
	return 0
}
