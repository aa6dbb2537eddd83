package group

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// killed stops a node and leaves on its disk what was there before: what a daemon
// leaves that is killed. Nothing is written to it meanwhile.
func (n *node) killed() {
	n.t.Helper()
	raft, before := filepath.Join(n.dir, "raft"), filepath.Join(n.t.TempDir(), "raft")
	if err := os.CopyFS(before, os.DirFS(raft)); err != nil {
		n.t.Fatal(err)
	}
	n.stop()
	if err := errors.Join(os.RemoveAll(raft), os.CopyFS(raft, os.DirFS(before))); err != nil {
		n.t.Fatal(err)
	}
}

// noted is how far the log of a node is agreed on, by its file.
func (n *node) noted() uint64 {
	n.t.Helper()
	dir := n.t.TempDir()
	text, err := os.ReadFile(filepath.Join(n.dir, "raft", "log", "agreed"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agreed"), text, 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	a, err := openAgreed(dir, 1<<62, slog.New(slog.DiscardHandler))
	if err != nil {
		n.t.Fatal(err)
	}
	defer a.close()
	return a.last
}

// A node that was killed, and starts while the others are gone, knows all that it knew, and no
// more; what would be new is refused, with the hosts that are missing.
func TestANodeThatWasKilledKnowsWhatItKnew(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	n := rest[0]
	setInTime(leader, "agreed")
	agree(t, nodes, "agreed")
	eventually.True(t, "it is noted", func() bool { return n.noted() >= n.machine.Summary().Applied })
	n.killed()
	if all, _ := os.ReadDir(filepath.Join(n.dir, "raft", "snapshots")); len(all) != 0 {
		t.Fatal("it has a snapshot, and would know without its log")
	}
	rest[1].stop()
	leader.stop()
	n.start(false)
	if v := n.machine.Setting("k"); v != "agreed" {
		t.Errorf("it knows %q", v)
	}
	eventually.True(t, "it knows who is missing", func() bool { return len(n.group.Missing()) == 2 })
	err := set(n, "new", time.Second)
	if !errors.Is(err, meta.ErrUnavailable) {
		t.Fatalf("something new: %v", err)
	}
	for _, missing := range []*node{leader, rest[1]} {
		if !strings.Contains(err.Error(), missing.addr) {
			t.Errorf("%v: where is %s?", err, missing.addr)
		}
	}
	leader.start(false)
	setInTime(n, "after")
	agree(t, []*node{n, leader}, "after")
}

// A command in a leader's log to which no other voter agreed is not executed after a restart.
func TestACommandThatWasNotAgreedToIsNotRecalled(t *testing.T) {
	nodes, w := voting(t, 3)
	leader, rest := leading(t, nodes)
	setInTime(leader, "agreed")
	agree(t, nodes, "agreed")
	eventually.True(t, "it is in the log of one that is cut off and leads yet", func() bool {
		w.heal()
		leader, rest = leading(t, nodes)
		w.isolate(leader.id, nodes...)
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		defer cancel()
		before := leader.group.raft.LastIndex()
		if _, err := leader.group.executor.apply(ctx, leader.group.config.self(), &state.Setting{Key: "k", Value: "alone"}); !errors.Is(err, meta.ErrUnavailable) {
			t.Fatalf("cut off, it wrote: %v", err)
		}
		return leader.group.raft.LastIndex() > before
	})
	leader.killed()
	w.heal()
	for _, n := range rest {
		n.stop()
	}
	leader.start(false)
	if v := leader.machine.Setting("k"); v != "agreed" {
		t.Errorf("it knows %q", v)
	}
	for _, n := range rest {
		n.start(false)
	}
	setInTime(rest[0], "after")
	agree(t, nodes, "after")
}

// How far a log is agreed on is never further than it goes, whatever is in the
// file.
func TestAgreedIsWithinTheLog(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	open := func(end uint64) *agreed {
		t.Helper()
		a, err := openAgreed(dir, end, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.close() })
		return a
	}
	if a := open(10); a.last != 0 {
		t.Errorf("without a file: %d", a.last)
	}
	open(10).note(7)
	for _, tt := range []struct{ end, want uint64 }{{10, 7}, {7, 7}, {5, 5}, {10, 5}} {
		if a := open(tt.end); a.last != tt.want {
			t.Errorf("of a log of %d: %d, want %d", tt.end, a.last, tt.want)
		}
	}
	for _, damage := range [][]byte{{}, {1, 2, 3}, make([]byte, 11), []byte("twelve bytes")} {
		open(10).note(9)
		if err := os.WriteFile(filepath.Join(dir, "agreed"), damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if a := open(10); a.last != 0 {
			t.Errorf("of %q: %d", damage, a.last)
		}
	}
}
