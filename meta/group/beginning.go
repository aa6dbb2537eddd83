package group

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rankfs/meta"
)

// A beginning is this node's, after it was started: the cluster is told, and this node
// catches up with it. Later it is told again whenever this node hears from no leader.
type beginning struct {
	config   *Config
	standing *standing
	replica  *replica
	greeter  *greeter
	arrivals *arrivals
}

// run tells the cluster that this node was started, and calls again whenever it has heard
// from no leader for a while, until ctx is done or the node was removed.
func (b *beginning) run(ctx context.Context) {
	var catchingUp sync.WaitGroup
	defer catchingUp.Wait()
	begun, tries := false, 0
	for ctx.Err() == nil {
		leadership, wait := b.replica.leadership.now(), time.Hour
		switch {
		case begun && b.replica.Leader() != "":
			tries = 0
		case begun && tries == 0: // an election is sooner over
			wait = b.config.times.dead
			tries++
		default:
			applied, err := b.sayHello(ctx)
			if err == nil && !begun {
				begun, tries = true, 0
				catchingUp.Go(func() { b.catchUp(ctx, applied) })
				continue
			}
			if b.config.Machine.Err() != nil {
				b.standing.fallBehind()
			}
			if err != nil {
				b.standing.notBegun(fmt.Errorf("this node cannot say that it was started: %w", err))
			}
			wait = min(b.config.times.pause<<min(tries, 10), b.config.times.look)
			tries++
		}
		select {
		case <-leadership.Done():
		case <-time.After(wait):
		case <-b.standing.removed:
			return
		case <-ctx.Done():
		}
	}
}

// sayHello has the leader hear of this node, through others if it is not known,
// and returns how far the leader was then.
func (b *beginning) sayHello(ctx context.Context) (applied uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.config.times.look)
	defer cancel()
	self, leader := b.config.Self, b.replica.Leader()
	h := hello{Addr: self.Addr, Life: self.Life, Host: self.Host, Deaf: leader == ""}
	switch {
	case b.replica.Leads():
		w, err := b.arrivals.begin(ctx, self.ID, h)
		return w.Applied, err
	case leader != "":
		return b.greeter.greet(ctx, h, []string{leader})
	}
	return b.greeter.greet(ctx, h, b.greeter.others(b.replica.voters()))
}

// catchUp waits until this node knows what the cluster knew when it heard of it.
// It may be sent a snapshot, and that takes as long as it takes: to call again
// would cut it off.
func (b *beginning) catchUp(ctx context.Context, applied uint64) {
	b.standing.notBegun(fmt.Errorf("this node %w: it is behind the cluster, and catches up", meta.ErrUnavailable))
	if b.replica.fsm.follow(ctx, applied) == nil {
		close(b.standing.begun)
	} else if b.config.Machine.Err() != nil {
		b.standing.fallBehind()
	}
}
