package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
)

// notes are a section that only these tests have: texts that nodes leave, and that
// are there since the version that a test says.
type notes struct{ table[string, string] }

var notesSince int

// Note leaves a text of a node, or takes it back if it is empty.
type Note struct {
	Entry
	Node, Text string
}

const maxNotes = 2

func (*notes) commands() []command {
	return []command{{kind: 99, blank: blank[Note], by: owns, since: notesSince}}
}

func (t *notes) share() sharer { return &notes{t.table.share()} }

func (t *notes) over() bool { return t.len() > maxNotes }

func (t *notes) write(f *frameWriter) {
	for node, text := range sorted(&t.table) {
		f.json('N', Note{Node: node, Text: text})
	}
}

func (t *notes) restore(in *restorer) frames {
	return frames{'N': each(func(n Note) error {
		_, twice := t.get(n.Node)
		t.set(n.Node, n.Text)
		return first(must(!twice, errTwice), n.check())
	})}
}

func (t *notes) nodeGone(_ *state, node string) { t.drop(node) }

// datasetGone drops the notes that are the name of a dataset.
func (t *notes) datasetGone(_ *state, d *Dataset) {
	maps.DeleteFunc(t.m, func(_, text string) bool { return text == d.Name })
}

func (t *notes) whole(s *state) error {
	for node := range sorted(&t.table) {
		if _, err := s.nodes().member(node); err != nil {
			return err
		}
	}
	return nil
}

func (c *Note) about(*state) string { return c.Node }

func (c *Note) check() error { return checkID(c.Node) }

func (c *Note) apply(s *state) (Result, error) {
	t := sectionOf[*notes](s)
	if _, ok := t.get(c.Node); !ok && t.len() >= maxNotes {
		return Result{}, fmt.Errorf("note %w: there are %d", meta.ErrBusy, maxNotes)
	}
	t.set(c.Node, c.Text)
	s.changed.cluster = true
	return Result{}, nil
}

// withNotes adds the line to the table, until the test ends.
func withNotes(t *testing.T, since int) {
	before := known
	notesSince = since
	known = append(slices.Clone(sections), fresh[notes]).index()
	t.Cleanup(func() { known = before })
}

var tokenOfNotes = strings.Repeat("0", 64)

// noted is a machine that understands such a version, of a cluster of this one and of
// four nodes, of which the first is an operator.
func noted(t *testing.T, speaks int) *Machine {
	m := Speaking(speaks)
	apply(t, m, lead(&Found{Cluster: Cluster{ID: "c", CA: "ca"}}),
		admits(1, Version),
		by(1, &Token{Hash: tokenOfNotes, Expires: 1 << 62, Uses: 9, Role: Member}),
		admits(2, Version), admits(3, Version), admits(4, Version))
	return m
}

func admits(n uint64, speaks int) Command {
	hash := tokenOfNotes
	if n == 1 {
		hash = ""
	}
	return lead(&Admit{TokenHash: hash, Node: Node{ID: idString(n), Host: "h", Addr: "h:1", Key: "k"}, Speaks: speaks})
}

// by is a command of a node, and lead one of the first as the leader.
func by(n uint64, c Command) Command { return said(c, Sender{Node: idString(n)}, Version) }

func lead(c Command) Command { return said(c, Sender{Node: idString(1), Leads: true}, Version) }

func said(c Command, by Sender, version int) Command {
	Sign(c, by, version)
	return c
}

func apply(t *testing.T, m *Machine, log ...Command) {
	t.Helper()
	for _, c := range log {
		if err := send(m, c); err != nil {
			t.Fatal(err)
		}
	}
}

func send(m *Machine, c Command) error {
	data, err := Encode(c)
	if err == nil {
		_, err = m.Apply(m.Sizes().Applied+1, data)
	}
	return err
}

func note(sender, node uint64, text string) Command {
	return by(sender, &Note{Node: idString(node), Text: text})
}

func saved(t *testing.T, m *Machine) []byte {
	t.Helper()
	var b bytes.Buffer
	s, err := m.Snapshot()
	if err == nil {
		_, err = s.WriteTo(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A section is one type and one line: what it agrees on is applied by those who
// have the right, told to those who wait, written, read and bounded, and is not
// there before its version.
func TestASectionOfItsOwn(t *testing.T) {
	empty := saved(t, noted(t, Version))
	withNotes(t, Signed)
	m := noted(t, Version)
	if got := saved(t, m); !bytes.Equal(got, empty) {
		t.Error("a section that has nothing changes snapshots")
	}
	changed := m.Changed()
	for _, tt := range []struct {
		name string
		c    Command
		want error
	}{
		{"of itself", note(2, 2, "a"), nil},
		{"of another node", note(2, 3, "a"), meta.ErrDenied},
		{"of a node that is not known", note(7, 7, "a"), meta.ErrDenied},
		{"of no node", by(2, new(Note)), meta.ErrInvalid},
		{"before its version", &Note{Node: idString(2), Text: "a"}, meta.ErrInvalid},
		{"of another, by the leader", lead(&Note{Node: idString(3), Text: "b"}), nil},
		{"one too many", note(4, 4, "c"), meta.ErrBusy},
		{"a change when there are as many as can be", note(2, 2, "d"), nil},
	} {
		if err := send(m, tt.c); !errors.Is(err, tt.want) {
			t.Errorf("a note %s: %v", tt.name, err)
		}
	}
	<-changed
	if err := New().Restore(bytes.NewReader(empty)); err != nil {
		t.Error(err)
	}
	before, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	data := saved(t, m)
	read, err := Read(bytes.NewReader(data))
	if err != nil || read.Hash() != m.Hash() || !bytes.Equal(saved(t, read), data) {
		t.Fatalf("read: %v", err)
	}
	for m, want := range map[*state]string{read.mu.state: "d", before.state: "d"} {
		if got, _ := sectionOf[*notes](m).get(idString(2)); got != want {
			t.Errorf("the note is %q", got)
		}
	}
	if err := send(m, note(2, 2, "e")); err != nil || read.Hash() == m.Hash() {
		t.Errorf("%v, or a note is not in the hash", err)
	}
	if got, _ := sectionOf[*notes](before.state).get(idString(2)); got != "d" {
		t.Errorf("a snapshot has changed to %q", got)
	}
}

// What is of a node or of a dataset goes with it, and a snapshot says at its end what it lacks.
func TestASectionHearsOfWhatGoes(t *testing.T) {
	withNotes(t, Signed)
	m := noted(t, Version)
	notes := sectionOf[*notes](m.mu.state)
	apply(t, m, by(1, &PutDataset{Name: "d", Registration: []byte("1"), Index: strings.Repeat("0", 64)}),
		note(2, 2, "d"), note(3, 3, "e"),
		by(1, &Remove{ID: idString(3)}),
		by(1, &RemoveDataset{Name: "d", Generation: 1}))
	if notes.len() != 0 {
		t.Errorf("of a node and a dataset that are gone there is %v", notes.m)
	}
	notes.set(idString(3), "f")
	if _, err := Read(bytes.NewReader(saved(t, m))); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("a note of a node that is gone: %v", err)
	}
}

// Frames of a section that no machine writes.
func TestForgedFramesOfASectionOfItsOwn(t *testing.T) {
	withNotes(t, Signed)
	frame := func(node uint64) string { return fmt.Sprintf(`{"Node":%q,"Text":"t"}`, idString(node)) }
	for _, tt := range []struct {
		name    string
		version int
		notes   []string
		want    error
	}{
		{"as many as can be", Signed, []string{frame(1), frame(2)}, nil},
		{"one too many", Signed, []string{frame(1), frame(2), frame(3)}, errMany},
		{"one twice", Signed, []string{frame(1), frame(1)}, errTwice},
		{"before their version", Oldest, []string{frame(1)}, errWrong},
	} {
		in := newRestorer(snapshotOf(tt.version))
		err := in.frame(tagHeader, fmt.Appendf(nil, `{"Version":%d}`, tt.version))
		for _, n := range tt.notes {
			err = first(err, in.frame('N', []byte(n)))
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Each tag of a frame, and each number of a command, is of one section.
func TestSectionsShareNothing(t *testing.T) {
	tags := map[tag]bool{tagEnd: true, tagApplied: true, tagHeader: true}
	in := newRestorer(snapshotOf(Version))
	for p := range having[section](in.s) {
		for tag := range p.restore(in) {
			if tags[tag] {
				t.Errorf("tag %q of %T is of another section as well", tag, p)
			}
			tags[tag] = true
		}
	}
	if n := len(known.types); n != len(known.kinds) {
		t.Errorf("%d types of commands have %d numbers", n, len(known.kinds))
	}
}
