package state_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// golden is what a machine of the release before has written: the commands of a
// log, some of which it refused, and a snapshot from among them.
func golden(t testing.TB) (log [][]byte, snapshot []byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/release3/log")
	if err == nil {
		snapshot, err = os.ReadFile("testdata/release3/snapshot")
	}
	if err != nil {
		t.Fatal(err)
	}
	for len(text) > 0 {
		n := 4 + int(binary.LittleEndian.Uint32(text))
		log, text = append(log, text[4:n]), text[n:]
	}
	return log, snapshot
}

// replay applies commands, whatever comes of them.
func replay(t testing.TB, m *state.Machine, log [][]byte) {
	t.Helper()
	for _, data := range log {
		m.Apply(m.Sizes().Applied+1, data)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A log and a snapshot of the release before are read, and lead to the state that
// it had; and until the cluster goes over to another version, what is written is
// what that release reads, to the byte.
func TestReleaseBefore(t *testing.T) {
	log, before := golden(t)
	read, err := state.Read(bytes.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	if got := written(t, snapshot(t, read)); !bytes.Equal(got, before) {
		t.Errorf("what was read is written as another snapshot: %d bytes of %d", len(got), len(before))
	}
	at := int(read.Sizes().Applied)
	m := state.New()
	replay(t, m, log[:at])
	if got := written(t, snapshot(t, m)); !bytes.Equal(got, before) {
		t.Errorf("the log leads to another snapshot: %d bytes of %d", len(got), len(before))
	}
	replay(t, m, log[at:])
	replay(t, read, log[at:])
	if m.Hash() != read.Hash() || m.Version() != state.Oldest {
		t.Errorf("by the log and by the snapshot: %x, %x, version %d", m.Hash(), read.Hash(), m.Version())
	}
	old, err := state.Encode(&state.Setting{Key: "k", Value: "v"})
	if err != nil || old[0] != state.Oldest {
		t.Errorf("a command without a sender is of version %d (%v)", old[0], err)
	}
}

// upgrade is signed by the leader.
func upgrade(leader string, nodes ...string) state.Command {
	return byLeader(leader, &state.Upgrade{To: state.Version, Nodes: nodes})
}

// A cluster of the release before goes over when all its nodes can, and from then
// on takes nothing of before; its snapshots are read by this release and refused
// by the one before.
func TestUpgrade(t *testing.T) {
	c := full(t)
	c.refuse(meta.ErrBusy, upgrade(id(1), id(1), id(2))) // and node 3?
	if c.m.Version() != state.Oldest {
		t.Fatalf("version %d", c.m.Version())
	}
	c.refuse(meta.ErrDenied, signedBy(id(2), &state.Upgrade{To: state.Version, Nodes: []string{id(1), id(2), id(3)}}))
	c.do(upgrade(id(1), id(1), id(2), id(3), id(7)))
	c.do(upgrade(id(1), id(1))) // has happened
	if c.m.Version() != state.Version || len(c.m.Tokens()) != 0 {
		t.Errorf("version %d, tokens %+v", c.m.Version(), c.m.Tokens())
	}
	for _, n := range c.m.Nodes() {
		if n.Role != state.Operator {
			t.Errorf("node %+v", n)
		}
	}
	c.refuse(meta.ErrUnavailable, &state.Setting{Key: "k", Value: "w"})
	c.do(signedBy(id(1), &state.Setting{Key: "k", Value: "w"}))
	through(t, c.m)
	old := state.Speaking(state.Oldest)
	if err := old.Restore(bytes.NewReader(written(t, snapshot(t, c.m)))); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a machine of the release before reads the snapshot: %v", err)
	}
}

// Of what this release has brought, as all that is of the pool, nothing is said unsigned, and
// a cluster that has not gone over refuses it, and stays what it is.
func TestWhatIsNewWaitsForTheUpgrade(t *testing.T) {
	all := slices.DeleteFunc(permissions(), func(p permission) bool {
		_, err := state.Encode(p.command())
		return err == nil || p.name == "Upgrade"
	})
	for _, name := range []string{
		"Promote", "OfferPool", "MakeJob", "DropJob", "UseJob", "MakeStage", "DropStage", "SpecifyStage", "BeginStage", "CommitMaps",
		"SealStage", "ResetStage", "KeepCopy", "DropMap", "PutBlobs", "DropBlob", "SetQuota", "ReserveQuota",
	} {
		if !slices.ContainsFunc(all, func(p permission) bool { return p.name == name }) {
			t.Errorf("%s may be said by the release before", name)
		}
	}
	c := full(t)
	before := c.m.Hash()
	for _, p := range all {
		c.refuse(meta.ErrUnavailable, byLeader(id(1), p.command()))
	}
	if c.m.Err() != nil || c.m.Hash() != before || c.m.Version() != state.Oldest {
		t.Errorf("%v, version %d", c.m.Err(), c.m.Version())
	}
}

// Before all have gone over, a leader that is ahead is refused, and nothing ends.
func TestAheadOfTheCluster(t *testing.T) {
	c := full(t)
	c.refuse(meta.ErrUnavailable, signedBy(id(1), &state.Setting{Key: "k", Value: "w"}))
	if c.m.Err() != nil || c.m.Setting("k") == "w" {
		t.Errorf("%v, %q", c.m.Err(), c.m.Setting("k"))
	}
}

// A machine that reads what a later release has written stops, and says what to do.
func TestTooNewAndTooOld(t *testing.T) {
	for _, tt := range []struct {
		name, data, advice string
		speaks             int
	}{
		{"of the next release", string([]byte{state.Version + 1}) + "\x14{}", "older than the cluster's: upgrade", state.Version},
		{"of this release, in the one before", string([]byte{state.Version}) + "\x14{}", "older than the cluster's: upgrade", state.Oldest},
		{"of two releases before", "\x02\x14{}", "releases between", state.Version},
	} {
		m := state.Speaking(tt.speaks)
		if _, err := m.Apply(1, []byte(tt.data)); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), tt.advice) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if m.Err() == nil {
			t.Errorf("%s: it goes on", tt.name)
		}
	}
	data := written(t, snapshot(t, full(t).m))
	if _, err := state.Read(bytes.NewReader(sealed(1, frames(data)))); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "releases between") {
		t.Errorf("a snapshot of two releases before: %v", err)
	}
}

var update = flag.Bool("update", false, "rewrite testdata/signed")

// A snapshot of a cluster that has gone over is to the byte what the first machines
// of its version have written: a release that changes that needs a version.
func TestSignedSnapshot(t *testing.T) {
	c := full(t)
	as := func(leads bool, command state.Command) {
		state.Sign(command, state.Sender{Node: id(1), Leads: leads}, state.Signed)
		c.do(command)
	}
	as(true, &state.Upgrade{To: state.Signed, Nodes: []string{id(1), id(2), id(3)}})
	for _, command := range []state.Command{
		&state.Token{Hash: index(5), Expires: 1 << 61, Uses: 3, Role: state.Member},
		&state.TakeUnit{View: view(1, 2), Reader: "late", Node: id(1), Take: 77, Nonce: 5},
	} {
		as(false, command)
	}
	got := written(t, snapshot(t, c.m))
	const file = "testdata/signed/snapshot"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d are written (%v)", len(got), len(want), err)
	}
	read, err := state.Read(bytes.NewReader(want))
	if err != nil || !bytes.Equal(written(t, snapshot(t, read)), want) {
		t.Errorf("what was read is written as another snapshot (%v)", err)
	}
}
