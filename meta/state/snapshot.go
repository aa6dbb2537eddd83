package state

import (
	"bufio"
	"fmt"
	"io"

	"rankfs/meta"
)

// A Snapshot is a machine as it was. It costs what changes after it.
type Snapshot struct{ state *state }

// Snapshot is the machine as it is now. There is none of a machine that has
// refused a command: the log up to that index would be thought to be in it.
func (m *Machine) Snapshot() (*Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.poison != nil {
		return nil, fmt.Errorf("snapshot: %w", m.mu.poison)
	}
	return &Snapshot{m.mu.state.share()}, nil
}

// WriteTo implements io.WriterTo. Equal machines are equal bytes.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	b := bufio.NewWriterSize(w, 1<<16)
	f := newFrameWriter(b)
	f.begin(s.state.snapshotVersion())
	f.json(tagApplied, s.state.Applied)
	s.state.write(f)
	f.end()
	if f.err == nil {
		f.err = b.Flush()
	}
	if f.err != nil {
		return f.n, fmt.Errorf("write snapshot: %w", f.err)
	}
	return f.n, nil
}

// write writes all but the index.
func (s *state) write(f *frameWriter) {
	f.json(tagHeader, s.header)
	for one := range having[section](s) {
		one.write(f)
	}
}

// Restore makes the machine the one that the snapshot was made of. If it
// fails, the machine is unchanged.
func (m *Machine) Restore(r io.Reader) error {
	s, err := readState(r, snapshotOf(m.speaks))
	if err != nil {
		return fmt.Errorf("snapshot of the cluster's state %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.state, m.mu.poison = s, nil
	m.mu.any.fire()
	m.mu.cluster.fire()
	m.mu.queues.fire()
	return nil
}

// readState reads all frames. The checksum comes last, and says nothing about
// what an enemy wrote, so nothing is believed before either.
func readState(r io.Reader, newest int) (*state, error) {
	f := newFrameReader(r)
	version, err := f.begin()
	if err != nil {
		return nil, err
	}
	known := canRead(version, snapshotOf(Oldest), newest)
	in := newRestorer(version)
	for {
		tag, payload, err := f.next()
		switch {
		case err != nil:
			return nil, err
		case tag == tagEnd && known != nil:
			return nil, known
		case tag == tagEnd:
			return in.s, in.check()
		case known != nil:
			continue
		}
		if err := in.frame(tag, payload); err != nil {
			return nil, fmt.Errorf("%w: section %q: %w", meta.ErrCorrupt, tag, hide(err))
		}
	}
}

func newRestorer(version int) *restorer {
	in := &restorer{
		s: newState(), version: version,
		read: make(map[tag]tagReader), seen: make(map[tag]bool), sequences: make(map[uint64]bool),
	}
	for one := range having[section](in.s) {
		for t, read := range one.restore(in) {
			in.read[t] = tagReader{read, one.over, since(one)}
		}
	}
	return in
}
