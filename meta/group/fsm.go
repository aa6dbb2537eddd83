package group

import (
	"io"

	"github.com/hashicorp/raft"

	"rankfs/meta/state"
)

// An fsm is the state machine as Raft wants it.
type fsm struct{ machine *state.Machine }

// An outcome is what a command came to.
type outcome struct {
	result state.Result
	err    error
}

// Apply implements raft.FSM.
func (f fsm) Apply(l *raft.Log) any {
	result, err := f.machine.Apply(l.Index, l.Data)
	return outcome{result, err}
}

// Snapshot implements raft.FSM.
func (f fsm) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.machine.Snapshot()
	return snapshot{s}, err
}

// Restore implements raft.FSM.
func (f fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	return f.machine.Restore(r)
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
