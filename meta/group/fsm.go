package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"rankfs/meta"
	"rankfs/meta/state"
)

// An fsm is the state machine as Raft wants it. Raft starts with the last snapshot,
// and executes the entries after it when a leader says that they are agreed on; those
// that were known to be agreed on before, recall executes at once. The lock is held while
// an entry is executed, and while a snapshot is restored: that may come between two
// entries, and ends the recall.
type fsm struct {
	machine  *state.Machine
	agreed   *agreed
	logEnds  *logEnds
	sync     func() error  // has the log on the disk
	recalled chan struct{} // closed when recall is over: commands come after that
	mu       struct {
		sync.Mutex
		restored int   // snapshots
		refused  error // why the last one was
	}
}

func newFSM(m *state.Machine, a *agreed, n *logEnds, sync func() error) *fsm {
	return &fsm{machine: m, agreed: a, logEnds: n, sync: sync, recalled: make(chan struct{})}
}

// An outcome is the result of a command, or its error.
type outcome struct {
	result state.Result
	err    error
}

// Apply implements raft.FSM. Raft applies the recalled commands once more, with no
// caller that waits, and the machine refuses them.
func (f *fsm) Apply(l *raft.Log) any {
	<-f.recalled
	f.mu.Lock()
	defer f.mu.Unlock()
	result, err := f.machine.Apply(l.Index, l.Data)
	f.agreed.note(max(l.Index, f.agreed.last))
	f.logEnds.executes(l.Index)
	return outcome{result, err}
}

// recall executes the commands of a log up to the last that is known to be agreed
// on. A snapshot that comes meanwhile has what they would do.
func (f *fsm) recall(log *journal) error {
	defer close(f.recalled)
	f.mu.Lock()
	restored := f.mu.restored
	f.mu.Unlock()
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	from := max(first, f.machine.Summary().Applied+1)
	for index := from; index <= f.agreed.last; index++ {
		var l raft.Log
		err := log.GetLog(index, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil // for a snapshot
		}
		if err != nil {
			return fmt.Errorf("read the log at %d: %w", index, err)
		}
		if l.Type == raft.LogCommand && !f.again(&l, restored) {
			return nil
		}
	}
	return nil
}

// again executes a command, unless a snapshot has come.
func (f *fsm) again(l *raft.Log, restored int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.restored != restored {
		return false
	}
	_, _ = f.machine.Apply(l.Index, l.Data) // its sender got the result when it was first applied
	f.logEnds.executes(l.Index)
	return true
}

// follow waits until this node has executed a command.
func (f *fsm) follow(ctx context.Context, index uint64) error {
	for {
		more := f.logEnds.next()
		if f.machine.Summary().Applied >= index {
			return nil
		}
		if err := f.machine.Err(); err != nil {
			return err // it goes no further
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("this node %w: it is behind the cluster: %w", meta.ErrUnavailable, ctx.Err())
		}
	}
}

// explain says why Raft does not start, of which it says only that no snapshot
// could be read.
func (f *fsm) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.refused != nil {
		return f.mu.refused
	}
	return err
}

// Snapshot implements raft.FSM. The log never ends before it.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	<-f.recalled
	if err := f.sync(); err != nil {
		return nil, err
	}
	s, err := f.machine.Snapshot()
	return snapshot{s}, err
}

// Restore implements raft.FSM.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.restored++
	f.mu.refused = f.machine.Restore(r)
	f.logEnds.executes(f.machine.Summary().Applied)
	return f.mu.refused
}

type snapshot struct{ *state.Snapshot }

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := s.WriteTo(sink); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
