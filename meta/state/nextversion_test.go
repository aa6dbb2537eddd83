package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rankfs/meta"
)

// next is a version that there is not yet. Machines that understand it are of the release
// after this one, which is the release before for them.
const next = Version + 1

// ahead is a command in the next version.
func ahead(sender uint64, c Command) Command { return said(c, Sender{Node: idString(sender)}, next) }

func goOver(nodes int) Command {
	c := &Upgrade{To: next}
	for n := range nodes {
		c.Nodes = append(c.Nodes, idString(uint64(n+1)))
	}
	return said(c, Sender{Node: idString(1), Leads: true}, next)
}

// A cluster of this version goes over to the next with all that it has: a version that changes
// nothing but commands leaves roles and tokens what they are. From then on commands are of that
// version, and the token lets nodes in that understand it.
func TestTheNextVersionKeepsWhatThereIs(t *testing.T) {
	m := noted(t, next)
	nodes, tokens := m.Nodes(), m.Tokens()
	apply(t, m, goOver(4))
	if m.Version() != next || !reflect.DeepEqual(m.Nodes(), nodes) || !reflect.DeepEqual(m.Tokens(), tokens) || len(tokens) != 1 {
		t.Errorf("version %d, nodes %+v, tokens %+v; want %+v and %+v", m.Version(), m.Nodes(), m.Tokens(), nodes, tokens)
	}
	if err := send(m, by(1, &Setting{Key: "k", Value: "v"})); !errors.Is(err, meta.ErrUnavailable) {
		t.Errorf("a command of this version: %v", err)
	}
	apply(t, m, ahead(1, &Setting{Key: "k", Value: "w"}))
	if err := send(m, ahead(2, &Setting{Key: "k", Value: "x"})); !errors.Is(err, meta.ErrDenied) || m.Setting("k") != "w" {
		t.Errorf("a member sets what is for operators: %v, %q", err, m.Setting("k"))
	}
	enters := func(speaks int) error {
		return send(m, said(admits(5, speaks), Sender{Node: idString(1), Leads: true}, next))
	}
	if err := enters(Version); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("a node of the release before is let in: %v", err)
	}
	if err := enters(next); err != nil || m.Nodes()[4].Role != Member {
		t.Errorf("a node by the token of before: %v", err)
	}
	if err := send(m, &Setting{Entry: Entry{version: next}, Key: "k"}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a command of no sender: %v", err)
	}
}

// Of an upgrade people are told what has changed in it, and no more.
func TestWhatAnUpgradeTells(t *testing.T) {
	for _, tt := range []struct {
		from, to int
		tokens   bool
	}{{Oldest, Signed, true}, {Oldest, next, true}, {Signed, next, false}, {Version, next, false}} {
		tells := strings.Join((&Upgrade{To: tt.to}).Tells(tt.from), "; ")
		if strings.Contains(tells, "tokens made before") != tt.tokens {
			t.Errorf("from %d to %d: %q", tt.from, tt.to, tells)
		}
	}
}

// A cluster of two versions before goes through what belongs to each on the way.
func TestTwoVersionsAtOnce(t *testing.T) {
	m := Speaking(next)
	apply(t, m, &Found{Cluster: Cluster{ID: "c", CA: "ca"}},
		&Admit{Node: Node{ID: idString(1), Host: "h", Addr: "h:1", Key: "k"}},
		&Token{Hash: tokenOfNotes, Expires: 1 << 62, Uses: 9},
		goOver(1))
	if n, _ := m.Node(idString(1)); m.Version() != next || n.Role != Operator || len(m.Tokens()) != 0 {
		t.Errorf("version %d, node %+v, tokens %+v", m.Version(), n, m.Tokens())
	}
}

// A section that begins with the next version is refused before all have gone over, and taken then.
func TestASectionOfTheNextVersion(t *testing.T) {
	withNotes(t, next)
	m := noted(t, next)
	a := func(version int) Command {
		return said(&Note{Node: idString(2), Text: "a"}, Sender{Node: idString(2)}, version)
	}
	hash := m.Hash()
	if err := send(m, a(Version)); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("version %d cannot be given before", next)) {
		t.Errorf("a note in a command of before: %v", err)
	}
	if err := send(m, a(next)); !errors.Is(err, meta.ErrUnavailable) {
		t.Errorf("a note, before the cluster has gone over: %v", err)
	}
	early, err := Encode(a(next))
	if err != nil {
		t.Fatal(err)
	}
	early[0] = Version
	if _, err := m.Decode(early); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("a note that says that it is of before: %v", err)
	}
	if m.Err() != nil || m.Hash() != hash {
		t.Errorf("something has changed (%v)", m.Err())
	}
	apply(t, m, goOver(4), a(next))
	if got, _ := sectionOf[*notes](m.mu.state).get(idString(2)); got != "a" {
		t.Errorf("the note is %q", got)
	}
}

// A snapshot of the next version is refused by the release before, which is advised, and
// restored by the next, which goes on with it.
func TestSnapshotsOfTheNextVersion(t *testing.T) {
	withNotes(t, next)
	m := noted(t, next)
	data := saved(t, m)
	if err := Speaking(Version).Restore(bytes.NewReader(data)); err != nil {
		t.Errorf("a snapshot of before, in the release before: %v", err)
	}
	apply(t, m, goOver(4), ahead(2, &Note{Node: idString(2), Text: "a"}))
	before := binary.LittleEndian.Uint32(data[len(magic):])
	data = saved(t, m)
	if got := binary.LittleEndian.Uint32(data[len(magic):]); got != before+1 {
		t.Errorf("the snapshot is of version %d, that of before of %d", got, before)
	}
	err := Speaking(Version).Restore(bytes.NewReader(data))
	if !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade it to the release") {
		t.Errorf("in the release before: %v", err)
	}
	read := Speaking(next)
	if err := read.Restore(bytes.NewReader(data)); err != nil || read.Hash() != m.Hash() || read.Version() != next || !bytes.Equal(saved(t, read), data) {
		t.Fatalf("version %d, and other bytes: %v", read.Version(), err)
	}
	apply(t, read, ahead(2, &Note{Node: idString(2), Text: "b"}))
	var b bytes.Buffer
	f := newFrameWriter(&b)
	f.begin(int(before))
	f.json(tagApplied, 1)
	m.mu.state.write(f)
	f.end()
	if err := read.Restore(&b); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("by the number of the version before: %v", err)
	}
}

// The release before stops where the cluster goes over, and says what to do.
func TestTheReleaseBeforeStopsAtTheNextVersion(t *testing.T) {
	m := noted(t, Version)
	if err := send(m, goOver(4)); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade it to the release") || m.Err() == nil {
		t.Errorf("it goes on (%v)", err)
	}
}
