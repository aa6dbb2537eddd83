package dispatch_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/queue"
)

// Each of many readers is given a unit of its own at once, and one that waits is given
// the unit of a reader that leaves, long before its own request would end.
func TestAWaitingReaderIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, queue.PolicyProbability, plainly, func(uint64) []string { return nil })
		readers := make(map[uint64]*dispatch.Reader) // by what they hold
		for i := range ranks * steps {
			r := c.member(i % 3).open(uint64(i % 3))
			unit, over, err := r.Next(t.Context(), false)
			if readers[unit] != nil || over || err != nil {
				t.Fatalf("reader %d is given unit %d, %v", i, unit, err)
			}
			readers[unit] = r
		}
		waiting := c.member(0).open(0)
		if waiting.Ready(t.Context(), false) {
			t.Error("ready while all units are held")
		}
		if _, _, err := waiting.Next(t.Context(), false); !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("a reader that does not wait: %v", err)
		}
		const left = 7
		time.AfterFunc(time.Second, func() {
			if err := readers[left].Leave(t.Context()); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		unit, over, err := waiting.Next(t.Context(), true)
		if waited := time.Since(start); unit != left || over || err != nil || waited < time.Second || waited > 1100*time.Millisecond {
			t.Errorf("after %v the waiting reader is given unit %d, %v", waited, unit, err)
		}
	})
}

// A unit whose reader is not done after a while is given to another one as well, which has
// waited for as long; the reader that is done first has done it, and the other is told.
func TestAUnitOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, queue.PolicyFlow, plainly, func(uint64) []string { return nil })
		slow := c.member(0).open(0)
		held, _, err := slow.Next(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		quick := c.member(1).open(1)
		for range ranks*steps - 1 {
			if unit, over, err := quick.Next(t.Context(), true); over || err != nil || unit == held {
				t.Fatalf("the other reader is given unit %d, %v, %v", unit, over, err)
			}
		}
		unit, over, err := quick.Next(t.Context(), true)
		if unit != held || over || err != nil {
			t.Errorf("with nothing else left it is given unit %d, %v, %v", unit, over, err)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("after %v of the virtual clock", waited)
		}
		if _, over, err := quick.Next(t.Context(), true); !over || err != nil {
			t.Errorf("when it is done with that: %v, %v", over, err)
		}
		if _, _, err := slow.Next(t.Context(), true); !errors.Is(err, meta.ErrOvertaken) {
			t.Errorf("the slow reader is told %v", err)
		}
	})
}
