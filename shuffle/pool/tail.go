package pool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/packing"
	"rankfs/shuffle/turns"
)

// What is written of attempts goes to the nodes that are to have copies while it is written:
// when an attempt is committed, most of it is there. Programs write past the daemon, which
// looks at the files now and then. What was changed after it had gone makes other bytes than
// those of the map's table: then the copy is sent whole.
const (
	tailTime  = 50 * time.Millisecond // between two looks
	tailBytes = 4 << 20               // at least so much goes at a time, so that small maps go at once
	maxTail   = 16 << 20              // and at most so much
	maxTails  = 64                    // attempts at a time
	bornTime  = time.Second           // from the open that makes a file until there is one
)

// tails are the attempts of which something goes to other nodes. The lock guards the table.
type tails struct {
	peers

	mu struct {
		sync.Mutex
		of map[string]*tail // by the paths of the attempts
	}
}

// A tail sends an attempt to other nodes while it is written.
type tail struct {
	stage   stage
	is      state.PoolStage
	attempt meta.Attempt
	nonce   uint64    // no other tail has it
	copies  copyNodes // once something goes

	end  chan struct{} // closed when it is to end
	stop context.CancelFunc
	done chan struct{} // closed when it has
	sent map[string]int64
}

// begin has an attempt sent while it is written, if it is to have copies that do not wait for
// what it has in the end.
func (all *tails) begin(f *files, g stage, a meta.Attempt) {
	is, err := g.is()
	if err != nil || !is.Specified() || is.Spec.Ring || is.Spec.Records.Kind != meta.NoRecords || all.elsewhere(is.Spec) == 0 {
		return
	}
	path := f.maps.Memory().Path(attemptPath(g.number, a))
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.mu.of[path] != nil || len(all.mu.of) >= maxTails {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &tail{
		stage: g, is: is, attempt: a, nonce: rand.Uint64(),
		end: make(chan struct{}), stop: stop, done: make(chan struct{}), sent: make(map[string]int64),
	}
	if all.mu.of == nil {
		all.mu.of = make(map[string]*tail)
	}
	all.mu.of[path] = t
	go func() {
		defer close(t.done)
		all.follow(ctx, f, t)
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.mu.of[path] == t && len(t.sent) == 0 {
			delete(all.mu.of, path)
		}
	}()
}

// take ends the tail of an attempt that is to be committed, and returns what nodes have of it.
// What is under way is waited for, as long as ctx does.
func (all *tails) take(ctx context.Context, f *files, name string) *tail {
	path := f.maps.Memory().Path(name)
	all.mu.Lock()
	t := all.mu.of[path]
	delete(all.mu.of, path)
	all.mu.Unlock()
	if t == nil {
		return nil
	}
	close(t.end)
	defer t.stop()
	select {
	case <-t.done:
	case <-ctx.Done():
		t.stop()
		<-t.done
	}
	return t
}

// stopAll ends all tails.
func (all *tails) stopAll() {
	all.mu.Lock()
	of := all.mu.of
	all.mu.of = nil
	all.mu.Unlock()
	for _, t := range of {
		t.stop()
		<-t.done
	}
}

// has is the number of bytes of the attempt that a node has.
func (t *tail) has(node string, g state.PoolStage) int64 {
	if t == nil || t.is.Generation != g.Generation {
		return 0
	}
	return t.sent[node]
}

// went reports whether something of the attempt has gone to other nodes, or was to.
func (t *tail) went(g state.PoolStage) bool {
	return t != nil && t.is.Generation == g.Generation && t.copies.given != nil
}

// number is the nonce, if there is a tail.
func (t *tail) number() uint64 {
	if t == nil {
		return 0
	}
	return t.nonce
}

// follow sends what is written until the tail ends, no node takes it, or it cannot be committed
// any more: its file has gone, or its stage, or another attempt has won.
func (all *tails) follow(ctx context.Context, f *files, t *tail) {
	var file *os.File
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	var nodes []string
	grown := time.Now()
	for at := int64(0); t.rest(ctx); {
		_, err := t.stage.is()
		if _, won := t.stage.winner(t.attempt.Map); won || err != nil {
			clear(t.sent)
			return
		}
		if file == nil {
			file, err = f.maps.Memory().OpenFile(attemptPath(t.stage.number, t.attempt), os.O_RDONLY, 0)
			switch {
			case errors.Is(err, os.ErrNotExist) && time.Since(grown) < bornTime:
				continue
			case err != nil:
				return
			}
		}
		end := written(file, at)
		if end < 0 {
			clear(t.sent)
			return
		}
		n := min(end-at, maxTail)
		if n < tailBytes {
			if time.Since(grown) > mapfiles.TailTime { // nodes give up what they have
				clear(t.sent)
				return
			}
			continue
		}
		if nodes == nil {
			if nodes = all.targets(f, t); len(nodes) == 0 {
				return
			}
		}
		failed := each(nodes, func(id string) error { return all.more(ctx, t, id, file, at, n) })
		for i := len(nodes) - 1; i >= 0; i-- {
			if failed[i] != nil {
				delete(t.sent, nodes[i])
				nodes = slices.Delete(nodes, i, i+1)
				continue
			}
			t.sent[nodes[i]] = at + n
		}
		if len(nodes) == 0 {
			return
		}
		at, grown = at+n, time.Now()
	}
}

// each does something with all nodes at once, and says what came of it at each.
func each(nodes []string, do func(id string) error) []error {
	errs := make([]error, len(nodes))
	var work sync.WaitGroup
	for i, id := range nodes {
		work.Go(func() { errs[i] = do(id) })
	}
	work.Wait()
	return errs
}

// rest waits until it is time to look, and reports whether the tail goes on.
func (t *tail) rest(ctx context.Context) bool {
	timer := time.NewTimer(tailTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.end:
	case <-ctx.Done():
	}
	return false
}

// targets are the nodes that a commit will give copies.
func (all *tails) targets(f *files, t *tail) []string {
	self, nodes := all.config.Cluster.Self(), all.config.Nodes()
	t.copies = f.spread.next(t.stage.job.Name, t.is, self, nodes)
	return slices.DeleteFunc(t.copies.choose(nodes), func(id string) bool { return id == self })
}

// written is the length of a file beyond an offset, without what is only reserved; below
// zero if it has gone.
func written(file *os.File, at int64) int64 {
	info, err := file.Stat()
	if err != nil || links(info) == 0 {
		return -1
	}
	if info.Size() <= at { // it may have become shorter
		return at
	}
	end, err := unix.Seek(int(file.Fd()), at, unix.SEEK_HOLE)
	if err != nil {
		return at
	}
	return end
}

// A tailRequest says of which attempt something comes, and where that begins.
type tailRequest struct {
	Stage, Generation uint64
	mapfiles.TailName
	At int64

	packing.Pushed
}

func (all *tails) name(t *tail) mapfiles.TailName {
	return mapfiles.TailName{Map: t.attempt.Map, Attempt: t.attempt.Number, Writer: all.config.Cluster.Self(), Nonce: t.nonce}
}

// more gives a node n bytes of an attempt.
func (all *tails) more(ctx context.Context, t *tail, node string, file *os.File, at, n int64) error {
	is := packing.Pushed{Packed: t.is.Spec.Packed, Plain: uint64(n)}
	body, err := json.Marshal(tailRequest{t.stage.number, t.is.Generation, all.name(t), at, is})
	if err != nil {
		return err
	}
	return all.push(ctx, node, turns.PartyOf(t.is), wire.Request{Call: pushTail, Body: body}, is, wire.From(io.NewSectionReader(file, at, n)))
}
