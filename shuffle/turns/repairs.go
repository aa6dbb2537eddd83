package turns

import (
	"context"
	"time"

	"rankfs/meta"
)

// turnTime is how long a copy that is made again waits to be the one that comes: less than its
// sender waits for a node that takes nothing.
const turnTime = 20 * time.Second

// Repairs has copies that are made again come one at a time, of all nodes, and none for as
// long as the one before took: others have the link half of the time.
type Repairs struct {
	free  chan struct{} // has one while none comes
	rests time.Time     // until then no turn comes; of the goroutine that has taken from the channel
}

// NewRepairs is a Repairs of which none is under way.
func NewRepairs() *Repairs {
	t := &Repairs{free: make(chan struct{}, 1)}
	t.free <- struct{}{}
	return t
}

// Take waits for a turn, which lasts until end is called.
func (t *Repairs) Take(ctx context.Context) (end func(), err error) {
	within, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	select {
	case <-t.free:
	case <-within.Done():
		return nil, busyWithOthers(ctx)
	}
	rest := time.NewTimer(time.Until(t.rests))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-within.Done():
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
