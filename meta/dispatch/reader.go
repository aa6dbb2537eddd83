package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Cluster brings readers of this node to the leader. It is used concurrently.
type Cluster interface {
	Self() string
	AskLeader(ctx context.Context, call string, request, reply any) error
	Do(ctx context.Context, c state.Command) (state.Result, error)
}

// Readers are the readers of one node. At most maxPlaces of their requests wait at the
// leader at a time.
type Readers struct {
	cluster Cluster
	machine ReaderState
	places  places
	open    sync.Map // the ids of those that have not left
}

// NewReaders makes the readers of a node, of which none is open yet.
func NewReaders(c Cluster, m ReaderState) *Readers {
	return &Readers{cluster: c, machine: m, places: make(places, maxPlaces)}
}

// A Reader is one open queue file. The lease on the unit that it holds is the
// cluster's; the reader knows its own id and how often it has asked.
//
// One goroutine at a time calls Next and Close, others may call Ready. mu guards what
// Next changes and Ready reads; it is not held while the leader is asked.
type Reader struct {
	*Readers
	name       string // of the view, as its user wrote it
	view       string
	generation uint64
	rank       uint64
	uid        uint32
	id         string
	asked      bool // the cluster may know this reader
	warned     bool // its user was told that units were set aside

	mu struct {
		sync.Mutex
		number uint64     // of the last request that has its reply
		holds  bool       // a unit, as far as it knows
		reply  *TakeReply // that Next has not given yet
	}
}

// Open opens the queue of a view, given its full name and the one that its user
// wrote, for a reader of a rank, who is a user.
func (r *Readers) Open(view, name string, generation, rank uint64, uid uint32) *Reader {
	var id [8]byte
	rand.Read(id[:])
	reader := &Reader{Readers: r, name: name, view: view, generation: generation, rank: rank, uid: uid, id: hex.EncodeToString(id[:])}
	r.open.Store(reader.id, true)
	return reader
}

// errLost tells a reader that its last batch does not count, before it gets another.
var errLost = fmt.Errorf("the batch before %w: it took long, this node was thought dead, or the queue was begun again; discard what was made of it, and read on",
	meta.ErrOvertaken)

// Next finishes the unit that the reader holds and takes another; over says that
// there is none left. If none is free it waits, or does not and returns EAGAIN.
// After an error it gives the same unit.
func (r *Reader) Next(ctx context.Context, wait bool) (unit uint64, over bool, err error) {
	reply := r.pending()
	if reply == nil {
		if err := r.take(ctx, wait); err != nil {
			return 0, false, err
		}
		reply = r.pending()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.reply = nil
	return uint64(reply.Unit), reply.Unit < 0, nil
}

func (r *Reader) pending() *TakeReply {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.reply
}

// take asks the leader until there is a reply. After an error, and while no unit is
// free, it sends the same request again.
func (r *Reader) take(ctx context.Context, wait bool) error {
	request := r.request()
	r.asked = true
	for {
		reply, err := r.ask(ctx, request, wait)
		switch {
		case err != nil:
			return fmt.Errorf("queue of %v: %w", r.view, err)
		case reply.Wait && !wait:
			return syscall.EAGAIN
		case reply.Wait && ctx.Err() != nil:
			return ctx.Err()
		case reply.Wait:
			continue
		}
		r.keep(reply)
		if reply.Lost {
			return errLost
		}
		if reply.Aside > 0 && !r.warned {
			r.warned = true
			return r.errAside(reply.Aside)
		}
		return nil
	}
}

// ask sends a request once. Where it may wait and finds no place to do so at the
// leader, it waits here.
func (r *Reader) ask(ctx context.Context, request TakeRequest, wait bool) (reply TakeReply, err error) {
	request.Wait = wait && r.places.enter()
	if request.Wait {
		defer r.places.leave()
	}
	err = r.cluster.AskLeader(ctx, CallTake, request, &reply)
	if err == nil && reply.Wait && wait && !request.Wait {
		r.places.pause(ctx)
	}
	return reply, err
}

func (r *Reader) request() TakeRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return TakeRequest{
		View: r.view, Generation: r.generation, Reader: r.id, Node: r.cluster.Self(), Rank: r.rank, UID: r.uid,
		Number: r.mu.number + 1, Finish: r.mu.holds,
	}
}

// keep notes a reply. One without a unit that says that the unit before was lost is
// all its reader is told: the next request is another one.
func (r *Reader) keep(reply TakeReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.number++
	r.mu.holds = reply.Unit >= 0
	if reply.Unit >= 0 || !reply.Lost {
		r.mu.reply = &reply
	}
}

// errAside tells a reader, in place of the end of the queue, that n units were set aside.
// The batch that it finished counts.
func (r *Reader) errAside(n int) error {
	what := FirstSetAside(r.machine, r.view)
	if what == "" { // this node does not know yet
		what = fmt.Sprint("batches: ", n)
	}
	return fmt.Errorf("queue of %s %w: %s; see: rankfs queue show %[1]s", r.name, meta.ErrSetAside, what)
}

// Leave gives back the unit that the reader holds, or that was on its way to a reader
// which did not wait for it.
func (r *Reader) Leave(ctx context.Context) error {
	defer r.open.Delete(r.id)
	if !r.asked {
		return nil
	}
	_, err := r.cluster.Do(ctx, &state.LeaveQueue{View: r.view, Reader: r.id})
	return err
}

// retireTime is between two tries to have readers leave: those that stay are counted, and
// do nothing.
const retireTime = 10 * time.Second

// Retire has the readers leave that an earlier daemon of this node has left open, and tries
// again until the cluster has taken it. What they held is for others since the cluster knows of
// this daemon; but they would be counted for ever as readers that are about to take more.
func (r *Readers) Retire(ctx context.Context, log *slog.Logger) {
	for {
		err := r.retire(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Warn("readers that an earlier daemon left open are counted still", "cause", err)
		select {
		case <-time.After(retireTime):
		case <-ctx.Done():
		}
	}
}

func (r *Readers) retire(ctx context.Context) error {
	for _, q := range r.machine.Queues() {
		for _, w := range r.machine.Readers(q.View) {
			if _, open := r.open.Load(w.ID); open || w.Left || w.Node != r.cluster.Self() {
				continue
			}
			if _, err := r.cluster.Do(ctx, &state.LeaveQueue{View: q.View, Reader: w.ID}); err != nil {
				return fmt.Errorf("queue of %s: %w", q.View, err)
			}
		}
	}
	return nil
}
