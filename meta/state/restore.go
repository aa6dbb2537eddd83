package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"rankfs/meta"
)

// Read is the machine that a snapshot was made of. Any damage is ErrCorrupt.
func Read(r io.Reader) (*Machine, error) {
	m := New()
	if err := m.Restore(r); err != nil {
		return nil, err
	}
	return m, nil
}

// Restore makes the machine the one that the snapshot was made of. If it
// fails, the machine is what it was.
func (m *Machine) Restore(r io.Reader) error {
	s, err := readState(r, snapshotOf(m.speaks))
	if err != nil {
		return fmt.Errorf("snapshot of the cluster's state %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.state, m.mu.poison = s, nil
	m.mu.cluster.fire()
	m.mu.queues.fire()
	return nil
}

// readState reads all frames. The checksum comes last, and says nothing about
// what an enemy wrote, so nothing is believed before either.
func readState(r io.Reader, newest uint32) (*state, error) {
	f := newFrameReader(r)
	version, err := f.begin()
	if err != nil {
		return nil, err
	}
	known := canRead(int(version), oldestSnapshot, int(newest))
	in := restorer{s: newState(), version: version, sequences: make(map[uint64]bool)}
	for {
		section, payload, err := f.next()
		switch {
		case err != nil:
			return nil, err
		case section == sectionEnd && known != nil:
			return nil, known
		case section == sectionEnd:
			return in.s, in.check()
		case known != nil:
			continue
		}
		if err := in.frame(section, payload); err != nil {
			return nil, fmt.Errorf("%w: section %q: %w", meta.ErrCorrupt, section, hide(err))
		}
	}
}

// hide takes the kind from an error, keeping its words: what is wrong inside
// of a snapshot makes the snapshot corrupt and nothing else.
func hide(err error) error { return errors.New(err.Error()) }

// A restorer puts a state together, frame by frame.
type restorer struct {
	s         *state
	version   uint32
	applied   bool
	header    bool
	job       *jobFrame // whose claims must come next
	nodes     []Runs
	queue     *queue // of the pages and workers that come next
	pinned    uint64 // sequence of the last plan
	sequences map[uint64]bool
}

var (
	errTwice = errors.New("something comes twice")
	errMany  = errors.New("there is more than can be")
	errWrong = errors.New("something cannot be so")
)

func (in *restorer) frame(s section, payload []byte) error {
	if (s == sectionClaims) != (in.job != nil) || !in.header && s != sectionApplied && s != sectionHeader {
		return errors.New("it comes out of turn")
	}
	switch s {
	case sectionApplied:
		twice := in.applied
		in.applied = true
		return first(must(!twice, errTwice), decode(payload, &in.s.Applied))
	case sectionHeader:
		return in.readHeader(payload)
	case sectionToken:
		return in.token(payload)
	case sectionNode:
		return in.node(payload)
	case sectionRemoved:
		return in.removed(string(payload))
	case sectionDataset:
		return in.dataset(payload)
	case sectionJob:
		return in.readJob(payload)
	case sectionClaims:
		return in.claims(payload)
	case sectionNodes:
		return in.rankMap(payload)
	case sectionPlan:
		return in.plan(payload)
	case sectionQueue:
		return in.readQueue(payload)
	case sectionUnits:
		return in.units(payload)
	case sectionSuspect:
		return in.suspect(payload)
	case sectionWorker:
		return in.worker(payload)
	case sectionSetting:
		return in.setting(payload)
	}
	return errors.New("it is unknown")
}

// check is what can be said at the end.
func (in *restorer) check() error {
	if !in.applied || !in.header || in.job != nil || in.s.nodes.len() == 0 && in.s.removed.len() > 0 {
		return fmt.Errorf("%w: something is missing", meta.ErrCorrupt)
	}
	return nil
}

func decode(payload []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.InputOffset() != int64(len(payload)) {
		return errWrong
	}
	return nil
}

// must is an error unless all is as it must be.
func must(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}
