package stall

import (
	"context"
	"errors"
	"time"

	"rankfs/meta"
)

// Gap is how long a rank may take between two opens and still be reading:
// a step may well take a minute. Longer gaps are no time of the job.
const Gap = time.Minute

// Totals are those of a job or a rank. Opens that are under way count in Wait, Time
// and Stalled as far as they have come, and elsewhere when they end.
type Totals struct {
	meta.OpenCounts
	Wait ByCause // of all opens, so that the sum may be longer than Stalled

	// Time is the time that the ranks were at it, each from its first open to the
	// end of its last, without what lies between two if that is longer than
	// Gap. Stalled is the part in which they waited for at least one open.
	Time, Stalled time.Duration
}

// count counts an open that has ended.
func (t *Totals) count(waited bool, bytes int64, err error) {
	t.Opens++
	switch {
	case waited:
		t.Waited++
	case err == nil:
		t.Ready++
	}
	switch {
	case errors.Is(err, context.Canceled):
		t.Interrupted++
	case err != nil:
		t.Errors++
	default:
		t.Bytes += bytes
	}
}

func (t *Totals) add(o Totals) {
	t.Opens, t.Ready, t.Waited, t.Errors = t.Opens+o.Opens, t.Ready+o.Ready, t.Waited+o.Waited, t.Errors+o.Errors
	t.Interrupted, t.Bytes, t.Wait = t.Interrupted+o.Interrupted, t.Bytes+o.Bytes, t.Wait.Add(o.Wait)
	t.Time, t.Stalled = t.Time+o.Time, t.Stalled+o.Stalled
}

// since is the difference between t and an earlier state of it.
func (t Totals) since(o Totals) Totals {
	t.Opens, t.Ready, t.Waited, t.Errors = t.Opens-o.Opens, t.Ready-o.Ready, t.Waited-o.Waited, t.Errors-o.Errors
	t.Interrupted, t.Bytes, t.Wait = t.Interrupted-o.Interrupted, t.Bytes-o.Bytes, t.Wait.Sub(o.Wait)
	t.Time, t.Stalled = t.Time-o.Time, t.Stalled-o.Stalled
	return t
}
