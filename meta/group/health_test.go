package group

import (
	"testing"
	"time"

	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// A node that was admitted after the others were asked is not taken for dead because it was
// not asked; once it was, it has as long to answer as any other.
func TestANodeThatWasNotAskedIsNotDead(t *testing.T) {
	first := newNode(t, 0).found()
	late := joined(t, first, 1, state.Member)
	eventually.True(t, "it is up", func() bool {
		n, ok := first.machine.Node(late.id)
		return ok && n.Up
	})
	seen := &liveness{dead: time.Minute, max: time.Minute}
	seen.begin([]string{first.id}, time.Now())
	h := &health{first.group.config, seen, first.group.duties.health.prober, first.group.duties.health.executor}
	h.report(t.Context())
	if n, _ := first.machine.Node(late.id); !n.Up {
		t.Error("it was taken for dead without having been asked")
	}
	seen.doubt(late.id, 0)
	if !seen.live(late.id) {
		t.Error("it was asked once, and is dead")
	}
	seen.looked(time.Now().Add(time.Minute))
	if seen.live(late.id) {
		t.Error("it was asked in vain for a minute, and is alive")
	}
}
