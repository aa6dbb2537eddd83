package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/state"
)

// A taker is one open queue file. Its lease on a batch is the cluster's; what is
// here is who it is, and how often it has asked.
type taker struct {
	view  *settling
	rank  uint64
	id    string
	known bool // to the cluster, perhaps
	told  bool // that some batches were set aside

	mu struct { // changed by Next, seen by Ready
		sync.Mutex
		asked uint64 // lines, this one included
		holds bool   // a batch, as far as it knows
		line  []byte // to be given next
	}
}

// Queue is for a rank that takes batches as they come.
func (s *settling) Queue(rank uint64) fs.Queue {
	var b [8]byte
	rand.Read(b[:])
	return &taker{view: s, rank: rank, id: hex.EncodeToString(b[:])}
}

// errLost is what a reader has to know before it asks for more.
var errLost = fmt.Errorf("the batch before %w: it took long, this node was thought dead, or the queue was begun again; discard what was made of it, and read on",
	meta.ErrOvertaken)

// Next finishes the batch before and takes another.
func (t *taker) Next(ctx context.Context, wait bool) ([]byte, error) {
	if err := t.view.settle(ctx, nil, t.rank); err != nil {
		return nil, err
	}
	if line := t.next(); line != nil {
		return line, nil
	}
	if err := t.ask(ctx, wait); err != nil {
		return nil, err
	}
	return t.next(), nil
}

// next is the line that is there already, if one is. It is given once.
func (t *taker) next() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.mu.line
	t.mu.line = nil
	return line
}

// ask has the leader choose. After an error, and when there is nothing to take
// for now, the same question is asked again.
func (t *taker) ask(ctx context.Context, wait bool) error {
	q := t.question()
	t.known = true
	m := t.view.node.member
	for {
		var a turn
		q.Wait = wait && m.waiting.enter()
		err := m.group.AskLeader(ctx, callQueue, q, &a)
		if q.Wait {
			m.waiting.leave()
		}
		if err != nil {
			return fmt.Errorf("queue of %v: %w", t.view.asked, err)
		}
		if a.Wait && wait && !q.Wait {
			m.waiting.pass(ctx)
		}
		switch {
		case a.Wait && !wait:
			return syscall.EAGAIN
		case a.Wait && ctx.Err() != nil:
			return ctx.Err()
		case a.Wait:
			continue
		}
		t.keep(a)
		if a.Lost {
			return errLost
		}
		if a.Aside > 0 && !t.told {
			t.told = true
			return t.view.errAside(a.Aside)
		}
		return nil
	}
}

// keep notes an answer.
func (t *taker) keep(a turn) {
	var line []byte
	switch {
	case a.Unit >= 0:
		line = t.view.describeUnit(uint64(a.Unit))
	case !a.Lost:
		line = []byte{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.asked++
	t.mu.holds, t.mu.line = a.Unit >= 0, line
}

// errAside is what a reader has to know before it takes the end for the end. The
// batch before counts.
func (s *settling) errAside(n int) error {
	what := s.node.member.aside(s.asked.String())
	if what == "" { // this node does not know yet
		what = fmt.Sprint("batches: ", n)
	}
	return fmt.Errorf("queue of %s %w: %s; see: rankfs queue show %[1]s", s.name, meta.ErrSetAside, what)
}

// unitName is the batch that a unit of a queue is.
func unitName(unit, ranks uint64) string {
	return fmt.Sprintf("rank-%d/batch-%06d", unit%ranks, unit/ranks)
}

func (t *taker) question() question {
	t.mu.Lock()
	defer t.mu.Unlock()
	return question{
		View: t.view.asked.String(), Generation: t.view.dataset.generation, Worker: t.id,
		Node: t.view.node.member.group.Self(), Rank: t.rank, Turn: t.mu.asked + 1, Finish: t.mu.holds,
	}
}

// describeUnit is the line of a batch.
func (s *settling) describeUnit(unit uint64) []byte {
	v := s.view.Load()
	rank, step := unit%v.Cut().Ranks, unit/v.Cut().Ranks
	size, where := v.Size(rank, step), "remote"
	if 2*v.holders(rank, step).held(v.host) > size || !v.Version.Source.Remote {
		where = "local"
	}
	path := filepath.Join(s.node.config.Mount, "datasets", s.name, unitName(unit, v.Cut().Ranks))
	return fmt.Appendf(nil, "%s %d %d %s\n", path, size, v.Records(rank, step), where)
}

// Close gives the batch back that was taken last, or that was on its way to a
// reader who did not wait for it. The cluster is told beside: whoever closes a
// file does not wait for it.
func (t *taker) Close() {
	if !t.known {
		return
	}
	n := t.view.node
	n.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), leaveTime)
		defer cancel()
		if _, err := n.member.group.Do(ctx, &state.LeaveQueue{View: t.view.asked.String(), Worker: t.id}); err != nil {
			n.config.Log.Warn("a batch was not given back to its queue", "view", t.view.asked.String(), "cause", err)
		}
	})
}

// leaveTime is how long an unmount may wait for the cluster to take work back.
// What it did not hear of comes back when this node is seen down.
const leaveTime = 2 * time.Second
