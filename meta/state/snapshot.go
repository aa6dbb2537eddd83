package state

import (
	"bufio"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
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

// Applied is the index of the last command in it.
func (s *Snapshot) Applied() uint64 { return s.state.Applied }

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

// Hash is the same for machines that are the same, whatever the index at which
// they came to be so.
func (m *Machine) Hash() uint64 {
	m.mu.Lock()
	s := m.mu.state.share()
	m.mu.Unlock()
	sum := xxhash.New()
	s.write(newFrameWriter(sum))
	return sum.Sum64()
}

// write writes all but the index.
func (s *state) write(f *frameWriter) {
	f.json(tagHeader, s.header)
	for _, part := range s.parts {
		part.write(f)
	}
}
