package state_test

import (
	"errors"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// begin opens the queue of an epoch, of so many units, for a user, and has a reader take one.
func (c *cluster) begin(epoch int, units uint64, uid uint32) {
	c.t.Helper()
	c.do(c.mine(opening(epoch, units, uid)))
	c.take(view(epoch, 1), "w", 0)
}

// mine is a command of node 1, which is signed where commands are.
func (c *cluster) mine(command state.Command) state.Command {
	if c.m.Version() < state.Signed {
		return command
	}
	return signedBy(id(1), command)
}

func opening(epoch int, units uint64, uid uint32) *state.OpenQueue {
	return &state.OpenQueue{View: view(epoch, 1), Generation: 1, Units: units, Policy: "flow", UID: uid}
}

// gone says which of some epochs have no queue any more.
func (c *cluster) gone(epochs ...int) (gone []int) {
	for _, epoch := range epochs {
		if _, ok := c.m.Queue(view(epoch, 1)); !ok {
			gone = append(gone, epoch)
		}
	}
	return gone
}

// Where there are as many queues as there may be, one goes of which nothing is lost: one
// of which no reader took a batch, or else one that is worked off, each time the oldest.
func TestQueueBounds(t *testing.T) {
	c := founded(t, 1)
	for epoch := range state.MaxQueues {
		c.begin(epoch, 1, 0)
	}
	c.refuse(meta.ErrBusy, opening(1<<16, 1, 0))
	for _, epoch := range []int{9, 7} {
		c.finish(view(epoch, 1), "w")
	}
	for _, epoch := range []int{20, 15} { // nothing is done of these
		c.do(&state.LeaveQueue{View: view(epoch, 1), Reader: "w"})
	}
	c.m = through(t, c.m)
	for n, want := range []int{15, 20, 7, 9} {
		if gone := c.gone(want); gone != nil {
			t.Fatalf("the queue of epoch %d was dropped early", want)
		}
		c.begin(1<<16+n, 1, 0)
		if gone := c.gone(want); gone == nil {
			t.Fatalf("another queue was dropped than that of epoch %d", want)
		}
	}
	c.refuse(meta.ErrBusy, opening(1<<17, 1, 0))
}

// A user has some of the queues, and only root may have all: other users find room, whatever one
// user has begun, and their queues are not dropped for it.
func TestQueuesOfOneUser(t *testing.T) {
	c := roled(t)
	const root, user, other = 0, 1000, 2000
	c.begin(0, 1, other)
	c.finish(view(0, 1), "w")
	for n := range state.MaxUserQueues {
		c.begin(1+n, 1, user)
	}
	c.m = through(t, c.m)
	another := 1 << 16
	c.refuse(meta.ErrBusy, c.mine(opening(another, 1, user)))
	c.begin(another+1, 1, other)
	c.begin(another+2, 1, root)
	c.finish(view(9, 1), "w")
	c.begin(another, 1, user)
	if gone := c.gone(0, 8, 9, 10); len(gone) != 1 || gone[0] != 9 {
		t.Fatalf("of epochs 0, 8, 9 and 10 the queues of %d are gone, want that of 9", gone)
	}
	c.do(c.mine(opening(1, 1, user))) // to open one that is there takes no room
}

func TestUnitsOfOneUser(t *testing.T) {
	c := roled(t)
	const user, other = 1000, 2000
	for epoch := range state.MaxUserUnits / state.MaxUnits {
		c.begin(epoch, state.MaxUnits, user)
	}
	c.refuse(meta.ErrBusy, c.mine(opening(100, 1, user)))
	c.begin(101, state.MaxUnits, other)
	c.do(c.mine(opening(102, 0, user)))
}

func TestUnitBounds(t *testing.T) {
	c := founded(t, 1)
	for epoch := range state.MaxAllUnits / state.MaxUnits {
		c.begin(epoch, state.MaxUnits, 0)
	}
	c.refuse(meta.ErrBusy, opening(100, 1, 0))
	c.do(opening(101, 0, 0))
	last := int64(state.MaxUnits - 1)
	c.take(view(3, 1), "v", last)
	c.finish(view(3, 1), "v")
	c.m = through(t, c.m)
	if q, _ := c.m.QueueState(view(3, 1)); q.Queue.Done != 1 || !isDone(q.Done, last) || isDone(q.Done, last-1) {
		t.Fatalf("%+v", q.Queue)
	}
}

// Which user opens a queue is said to no machine that does not know of users.
func TestUsersOfQueuesAreSigned(t *testing.T) {
	for uid, want := range map[uint32]byte{0: state.Oldest, 1: state.Version} {
		open := opening(1, 1, uid)
		if uid != 0 {
			signedBy(id(1), open)
		}
		if data, err := state.Encode(open); err != nil || data[0] != want {
			t.Errorf("user %d: %q, %v; want version %d", uid, data, err, want)
		}
	}
	unsigned := `{"View":"` + view(1, 1) + `","Generation":1,"Units":1,"Policy":"flow","UID":1}`
	if _, err := state.Decode(append([]byte{state.Oldest, 15}, unsigned...)); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("a user before there were any: %v", err)
	}
}
