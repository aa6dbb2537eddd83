package dispatch_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// A refusing cluster takes no more commands that have a reader leave before it was asked for so
// many.
type refusing struct {
	member
	left *int
}

func (r refusing) Do(ctx context.Context, command state.Command) (state.Result, error) {
	if _, is := command.(*state.LeaveQueue); is && *r.left > 0 {
		*r.left--
		return state.Result{}, meta.ErrUnavailable
	}
	return r.member.Do(ctx, command)
}

// Readers that an earlier daemon of the node left open leave, also if the cluster does not
// answer at first; those of this daemon and of other nodes stay.
func TestReadersOfAnEarlierDaemonRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, refusals := newCluster(t, queue.PolicyFlow, plainly, spread), 2
		m := c.member(0)
		now := dispatch.NewReaders(refusing{m, &refusals}, c.machine)
		d, _ := c.machine.Dataset(dataset)
		for _, r := range []*dispatch.Reader{m.open(0), c.member(1).open(1), now.Open(view, dataset, d.Generation, 2, 0)} {
			if _, _, err := r.Next(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		now.Retire(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		for _, r := range c.machine.Readers(view) {
			if r.Left != (r.Rank == 0) {
				t.Errorf("the reader of rank %d has left: %v", r.Rank, r.Left)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("two tries in vain are %d lines of the log:\n%s", n, &log)
		}
	})
}
