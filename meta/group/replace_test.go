package group

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/test/eventually"
)

// A node whose copy of the cluster's state is damaged, in whatever way, gets
// another from the others, and a vote as before. What cannot be read is kept.
func TestADamagedReplicaIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(n *node) error
		kept   string // of what was there
	}{
		{"all snapshots", func(n *node) error { n.spoil(2); return nil }, "snapshots"},
		{"a log that does not fit", func(n *node) error { n.spoil(1); return nil }, "log"},
		{"the head of the log", func(n *node) error {
			return os.WriteFile(filepath.Join(n.dir, "raft", "log", "wal-meta.db"), make([]byte, 64<<10), 0o600)
		}, "log"},
		{"everything is gone", func(n *node) error { return os.RemoveAll(filepath.Join(n.dir, "raft")) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes, _ := voting(t, 3)
			_, rest := leading(t, nodes)
			n := rest[0]
			n.aged()
			if err := tt.damage(n); err != nil {
				t.Fatal(err)
			}
			if err := set(rest[1], "meanwhile", enough); err != nil {
				t.Fatal(err)
			}
			n.start(false)
			if err := n.begun(); err != nil {
				t.Fatal(err)
			}
			if v := n.machine.Setting("k"); v != "meanwhile" {
				t.Errorf("it knows %q", v)
			}
			eventually.True(t, "all vote again", func() bool { return vote(nodes, 3) })
			aside, err := os.ReadDir(filepath.Join(n.dir, "raft", "damaged"))
			if kept := slices.ContainsFunc(aside, func(e os.DirEntry) bool { return e.Name() == tt.kept }); err == nil && tt.kept != "" && !kept || err != nil && tt.kept != "" {
				t.Errorf("kept are %v (%v)", aside, err)
			}
			// It is as good as another: the cluster lives by its vote.
			last := nodes[slices.IndexFunc(nodes, func(o *node) bool { return o != n && o != rest[1] })]
			last.stop()
			if err := set(n, "after", enough); err != nil {
				t.Error(err)
			}
		})
	}
}

// aged stops a node that has two snapshots, and a log that goes on after the last.
func (n *node) aged() {
	n.t.Helper()
	for _, value := range []string{"a", "b", "c"} {
		for range 10 {
			if err := set(n, value, enough); err != nil {
				n.t.Fatal(err)
			}
		}
		eventually.True(n.t, "it knows", func() bool { return n.machine.Setting("k") == value })
		if value != "c" {
			n.snapshot(1)
		}
	}
	c := n.group.raft.ReloadableConfig()
	c.TrailingLogs = 1
	if err := n.group.raft.ReloadConfig(c); err != nil {
		n.t.Fatal(err)
	}
	eventually.True(n.t, "it knows the others", func() bool { return len(n.group.directory.list()) == 2 })
	n.stop()
}

// tear cuts a node's log to so many bytes.
func (n *node) tear(bytes int64) error {
	segments, err := filepath.Glob(filepath.Join(n.dir, "raft", "log", "*.wal"))
	if err == nil && len(segments) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		return err
	}
	return os.Truncate(segments[len(segments)-1], bytes)
}

// A node alone whose log was torn, so that it ends before the snapshot, goes on
// from that.
func TestALoneLogThatEndsBeforeItsSnapshot(t *testing.T) {
	n := newNode(t, 0).found()
	for i := range 20 {
		if err := set(n, fmt.Sprint(i), enough); err != nil {
			t.Fatal(err)
		}
	}
	n.stop()
	for _, bytes := range []int64{400, 2000} {
		if err := n.tear(bytes); err != nil {
			t.Fatal(err)
		}
		n.start(false)
		if err := n.begun(); err != nil {
			t.Fatal(err)
		}
		if v := n.machine.Setting("k"); v != "19" {
			t.Errorf("cut to %d bytes: it knows %q", bytes, v)
		}
		for range 20 {
			if err := set(n, "19", enough); err != nil {
				t.Fatalf("cut to %d bytes: %v", bytes, err)
			}
		}
		n.stop()
	}
}

// One of several gets what it lost from the others: it may have said that it had
// more.
func TestALogThatEndsBeforeItsSnapshot(t *testing.T) {
	nodes, _ := voting(t, 3)
	_, rest := leading(t, nodes)
	n := rest[0]
	for i := range 40 {
		if err := set(n, fmt.Sprint(i), enough); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "it knows the others", func() bool { return len(n.group.directory.list()) == 2 })
	n.stop()
	if err := n.tear(4500); err != nil {
		t.Fatal(err)
	}
	n.start(false)
	if err := n.begun(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "raft", "damaged", "log")); err != nil {
		t.Error(err)
	}
	if v := n.machine.Setting("k"); v != "39" {
		t.Errorf("it knows %q", v)
	}
	eventually.True(t, "all vote again", func() bool { return vote(nodes, 3) })
}

// A damaged node that knows only one other, which does not lead, is sent on to the leader.
func TestADamagedReplicaIsSentOn(t *testing.T) {
	nodes, _ := voting(t, 3)
	_, rest := leading(t, nodes)
	n := rest[0]
	n.aged()
	n.spoil(2)
	k, err := openKnown(filepath.Join(n.dir, "known"))
	if err == nil {
		err = k.keep([]knownNode{{rest[1].id, rest[1].addr}})
	}
	if err != nil {
		t.Fatal(err)
	}
	n.start(false)
	if err := n.begun(); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "c")
}

// While no other node is there that could have it removed, a node whose state is damaged does
// not begin with nothing: it may have voted, and must not vote again.
func TestADamagedReplicaWaitsForTheOthers(t *testing.T) {
	nodes, _ := voting(t, 3)
	_, rest := leading(t, nodes)
	n := rest[0]
	n.aged()
	n.spoil(2)
	for _, other := range nodes {
		other.stop()
	}
	n.times.patience = time.Second
	err := n.try(false)
	if !errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), "majority") {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	n.group = nil
	if _, err := os.Stat(filepath.Join(n.dir, "raft", "damaged")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is damaged was moved (%v)", err)
	}
	n.times.patience = quick().patience
	for _, other := range nodes {
		if other != n {
			other.start(false)
		}
	}
	n.start(false)
	if err := n.begun(); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "c")
}
