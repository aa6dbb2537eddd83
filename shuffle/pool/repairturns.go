package pool

import (
	"context"
	"time"

	"rankfs/meta"
)

// turnTime is how long a copy that is made again waits to be the one that comes: less than its
// sender waits for a node that takes nothing.
const turnTime = 20 * time.Second

// repairTurns has copies that are made again come one at a time, of all nodes, and none for as
// long as the one before took: others have the link half of the time.
type repairTurns struct {
	free  chan struct{} // has one while none comes
	rests time.Time     // until then no turn comes; of the goroutine that has taken from the channel
}

func newRepairTurns() *repairTurns {
	t := &repairTurns{free: make(chan struct{}, 1)}
	t.free <- struct{}{}
	return t
}

// take waits for a turn, which lasts until end is called.
func (t *repairTurns) take(ctx context.Context) (end func(), err error) {
	within, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	select {
	case <-t.free:
	case <-within.Done():
		return nil, busyWithOthers(ctx)
	}
	if !sleep(within, time.Until(t.rests)) {
		t.free <- struct{}{}
		return nil, busyWithOthers(ctx)
	}
	begun := time.Now()
	return func() {
		t.rests = time.Now().Add(time.Since(begun))
		t.free <- struct{}{}
	}, nil
}

func busyWithOthers(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return meta.Worded(meta.ErrBusy, "other nodes make copies again here, one at a time: it comes later")
}
