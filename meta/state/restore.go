package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"rankfs/meta"
)

// hide takes the kind from an error, keeping its words: what is wrong inside
// of a snapshot makes the snapshot corrupt and nothing else.
func hide(err error) error { return errors.New(err.Error()) }

// A restorer puts a state together, frame by frame.
type restorer struct {
	s         *state
	version   int // of the snapshot
	read      map[tag]tagReader
	seen      map[tag]bool // of the frames that there is one of
	due       tag          // the frame that must come next, if one must
	sequences map[uint64]bool
}

// frames has the functions that read the frames of a section, by tag. Each checks its
// frame for what would break the machine later, and for what no machine writes.
type frames map[tag]func(payload []byte) error

// A tagReader reads frames of one tag into a section.
type tagReader struct {
	read  func(payload []byte) error
	over  func() bool // whether there is more of that than can be
	since int         // the version in which there may be one
}

var (
	errTwice = errors.New("something comes twice")
	errMany  = errors.New("there is more than can be")
	errWrong = errors.New("something cannot be so")
)

func (in *restorer) frame(t tag, payload []byte) error {
	if in.due != 0 && t != in.due || !in.seen[tagHeader] && t != tagApplied && t != tagHeader {
		return errors.New("it comes out of turn")
	}
	in.due = 0
	if t == tagApplied || t == tagHeader {
		return in.single(t, payload)
	}
	r, ok := in.read[t]
	if !ok {
		return errors.New("it is unknown")
	}
	if in.s.version() < r.since {
		return errWrong
	}
	if err := r.read(payload); err != nil {
		return err
	}
	return must(!r.over(), errMany)
}

// single reads a frame of the machine itself, of which there is one.
func (in *restorer) single(t tag, payload []byte) error {
	if in.seen[t] {
		return errTwice
	}
	in.seen[t] = true
	if t == tagApplied {
		return decode(payload, &in.s.Applied)
	}
	h := &in.s.header
	if err := decode(payload, h); err != nil {
		return err
	}
	return must(snapshotOf(h.version()) == in.version && h.Now >= 0 && h.Generation < 1<<63 && h.Sequence < 1<<63 && h.Evicted <= h.Sequence, errWrong)
}

// sequence takes a number that nothing else may have.
func (in *restorer) sequence(n uint64) error {
	if in.sequences[n] {
		return errTwice
	}
	in.sequences[n] = true
	return must(n > 0 && n <= in.s.Sequence, errWrong)
}

// check checks what only the end of a snapshot shows.
func (in *restorer) check() error {
	if !in.seen[tagApplied] || !in.seen[tagHeader] || in.due != 0 {
		return fmt.Errorf("%w: something is missing", meta.ErrCorrupt)
	}
	for one := range having[interface{ whole(*state) error }](in.s) {
		if err := one.whole(in.s); err != nil {
			return fmt.Errorf("%w: %w", meta.ErrCorrupt, hide(err))
		}
	}
	return nil
}

// each reads frames of JSON.
func each[T any](take func(T) error) func([]byte) error {
	return func(payload []byte) error {
		var v T
		if err := decode(payload, &v); err != nil {
			return err
		}
		return take(v)
	}
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
