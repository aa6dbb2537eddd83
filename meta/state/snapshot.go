package state

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

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
	f.json(sectionApplied, s.state.Applied)
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

// These are the forms of things in a snapshot that differ from the things.
type (
	datasetFrame struct {
		Dataset
		Record []byte // to the byte, which JSON in JSON is not
	}
	jobFrame struct {
		Dataset  string
		Ranks    uint64
		Sequence uint64
	}
	planFrame struct {
		Plan
		Map int // which of the frames of nodes it has
	}
	settingFrame struct{ Key, Value string }
)

// write writes all but the index. What refers to something comes after it.
func (s *state) write(f *frameWriter) {
	f.json(sectionHeader, s.header)
	for _, t := range sorted(&s.tokens) {
		f.json(sectionToken, t)
	}
	for _, n := range sorted(&s.nodes) {
		f.json(sectionNode, n)
	}
	for id, host := range sorted(&s.removed) {
		f.frame(sectionRemoved, []byte(id+" "+host))
	}
	for _, d := range sorted(&s.datasets) {
		f.json(sectionDataset, datasetFrame{*d, d.Record})
	}
	s.writeJobs(f)
	s.writePlans(f)
	for _, q := range sorted(&s.queues) {
		q.write(f)
	}
	for k, v := range sorted(&s.settings) {
		f.json(sectionSetting, settingFrame{k, v})
	}
}

func (s *state) writeJobs(f *frameWriter) {
	keys := slices.SortedFunc(maps.Keys(s.jobs.m), func(a, b jobKey) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.ranks, b.ranks))
	})
	for _, k := range keys {
		j := s.jobs.m[k]
		f.json(sectionJob, jobFrame{k.dataset, k.ranks, j.sequence})
		claims := make([]byte, 0, 16*k.ranks)
		for i := range j.node {
			claims = binary.LittleEndian.AppendUint64(claims, j.node[i])
			claims = binary.LittleEndian.AppendUint64(claims, j.last[i])
		}
		f.frame(sectionClaims, claims)
	}
}

// writePlans writes plans in the order of their pinning, and the nodes that
// some have in common before the first of them.
func (s *state) writePlans(f *frameWriter) {
	numbers := make(map[*Run]int)
	plans := slices.SortedFunc(maps.Values(s.plans.m), func(a, b *Plan) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, p := range plans {
		number, ok := numbers[&p.Nodes[0]]
		if !ok {
			number = len(numbers)
			numbers[&p.Nodes[0]] = number
			text, _ := p.Nodes.MarshalText()
			f.frame(sectionNodes, text)
		}
		frame := planFrame{*p, number}
		frame.Nodes = nil
		f.json(sectionPlan, frame)
	}
}

func (q *queue) write(f *frameWriter) {
	f.json(sectionQueue, q.Queue)
	for i, p := range q.units.pages {
		if p == nil {
			continue
		}
		b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+pageUnits/8), uint64(i))
		for _, word := range p {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
		f.frame(sectionUnits, b)
	}
	for _, r := range q.suspected() {
		f.json(sectionSuspect, r)
	}
	for _, w := range sorted(&table[string, *worker]{m: q.workers}) {
		f.json(sectionWorker, w)
	}
}
