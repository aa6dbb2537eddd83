package forecast

import (
	"testing"

	"rankfs/cmd/internal/control"
)

func TestPace(t *testing.T) {
	job := func(opens uint64, worked float64) control.Job {
		return control.Job{
			Here: 2, Minute: control.Window{Ranks: 2},
			Total: control.Account{OpenCounts: control.OpenCounts{Opens: opens}, RankSeconds: worked + 5, Stalled: 5},
		}
	}
	silent := job(102, 10)
	silent.Minute.Ranks = 0
	for name, test := range map[string]struct {
		jobs []control.Job
		want float64
	}{
		"no job":                {nil, 0},
		"not now":               {[]control.Job{silent}, 0},
		"too little":            {[]control.Job{job(7, 10)}, 0},
		"between opens":         {[]control.Job{job(8, 12)}, 2},
		"waits alone":           {[]control.Job{job(102, 0)}, 0},
		"the one opened last":   {[]control.Job{job(102, 10), job(102, 20)}, 0.1},
		"the one that is known": {[]control.Job{silent, job(2, 0), job(102, 20)}, 0.2},
	} {
		if got := pace(control.Load{Jobs: test.jobs}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
