package group

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// shuffling has a node make a stage of a job, and returns what commits a map of it.
func shuffling(n *node, spec string) (commit func(number uint64) error) {
	n.t.Helper()
	do := func(c state.Command) state.Result {
		r, err := n.group.Do(n.t.Context(), c)
		if err != nil {
			n.t.Fatalf("%T: %v", c, err)
		}
		return r
	}
	do(&state.MakeJob{Node: n.id, Name: "j", Nonce: 1})
	stage := do(&state.MakeStage{Job: "j", Name: "s", Nonce: 2}).Stage().Number
	do(&state.SpecifyStage{StageName: state.StageName{Job: "j", Name: "s", Number: stage}, Spec: spec})
	return func(number uint64) error {
		_, err := n.group.Agree(n.t.Context(), &state.CommitMaps{Maps: state.MapsByStage{{Stage: stage, Maps: state.Commits{
			{Map: number, Writer: n.id, Nodes: []string{n.id}},
		}}}})
		return err
	}
}

// commits are how many maps of the stage of shuffling a node knows of.
func (n *node) commits() int {
	j, _ := n.machine.PoolJob("j")
	g, _ := n.machine.Stage(j.Number, "s")
	return n.machine.Commits(g.Number).Len()
}

// Removals do not wait for the disk of a node that no other knows of. A power failure undoes
// them, unless it was asked whether they last.
func TestARemovalDoesNotWaitForTheDisk(t *testing.T) {
	for _, asked := range []bool{false, true} {
		n := newNode(t, 0)
		n.fragile = true
		n.found()
		commit := shuffling(n, "maps=100")
		for i := range uint64(10) {
			if err := commit(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.group.Lasts(); err != nil {
			t.Fatal(err)
		}
		n.patient()
		before, first := n.disk.syncs(), n.machine.Summary().Applied
		for i := range uint64(10) {
			if _, err := n.group.Do(t.Context(), &state.DropMap{StageName: state.StageName{Job: "j", Name: "s"}, Map: i}); err != nil {
				t.Fatal(err)
			}
		}
		syncs, others := n.disk.syncs()-before, int(n.machine.Summary().Applied-first)-10
		if syncs > others || n.copies() != 0 {
			t.Errorf("ten removals, and %d other commands, took %d syncs; %d maps are left", others, syncs, n.copies())
		}
		want := 10
		if asked {
			want = 0
			if err := n.group.Lasts(); err != nil {
				t.Fatal(err)
			}
		}
		quiet := n.machine.Summary().Applied-first == 10 // else a command of the leader's own has taken them to the disk
		n.kill(false)
		n.start(false)
		if err := n.group.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n.copies() != want && (quiet || asked) {
			t.Errorf("asked: %v: after a power failure %d maps are there, not %d", asked, n.copies(), want)
		}
	}
}

// copies are how many maps of the stage of shuffling a node knows a copy of.
func (n *node) copies() (count int) {
	j, _ := n.machine.PoolJob("j")
	g, _ := n.machine.Stage(j.Number, "s")
	for _, c := range n.machine.Commits(g.Number).All() {
		count += len(c.Nodes)
	}
	return count
}

// patient has what may wait for the disk wait for ever, or for something else to be written.
func (n *node) patient() {
	j := n.group.store.log
	j.storing.Lock()
	defer j.storing.Unlock()
	j.late = time.Hour
}

// A node that no other knows of answers commits of maps that are in memory before they are
// synced, and no other commands. What it says of them once it was asked whether that lasts,
// or after any other command, a power failure leaves.
func TestACommitDoesNotWaitForTheDisk(t *testing.T) {
	for _, one := range []struct {
		name, spec string
		then       func(*node) error
		waits      bool // each commit, for the disk
		left       int  // of ten
	}{
		{name: "in memory", spec: "maps=100", then: func(*node) error { return nil }},
		{name: "asked for", spec: "maps=100", then: func(n *node) error { return n.group.Lasts() }, left: 10},
		{name: "before another command", spec: "maps=100", then: func(n *node) error { return put(n, "d") }, left: 10},
		{name: "before a snapshot", spec: "maps=100", then: func(n *node) error {
			err := n.group.raft.Snapshot().Error()
			if left := len(n.group.store.log.tail.all()); left > 0 {
				err = errors.Join(err, fmt.Errorf("the log ends %d entries before the snapshot", left))
			}
			return err
		}, left: 10},
		{name: "on disks", spec: "maps=100 ack=durable", then: func(*node) error { return nil }, waits: true, left: 10},
	} {
		t.Run(one.name, func(t *testing.T) {
			n := newNode(t, 0)
			n.fragile = true
			n.found()
			commit := shuffling(n, one.spec)
			n.patient()
			first, before := n.machine.Summary().Applied, n.disk.syncs()
			for i := range uint64(10) {
				if err := commit(i); err != nil {
					t.Fatal(err)
				}
			}
			syncs := n.disk.syncs() - before
			eventually.True(t, "what was synced is executed", func() bool { return len(n.group.writes) == 0 })
			others := int(n.machine.Summary().Applied-first) - 10
			if one.waits && syncs < 10 || !one.waits && syncs > others { // a leader has commands of its own
				t.Errorf("ten commits, and %d other commands, took %d syncs", others, syncs)
			}
			if n.commits() != 10 {
				t.Errorf("%d commits are known", n.commits())
			}
			if err := one.then(n); err != nil {
				t.Fatal(err)
			}
			n.kill(false)
			n.start(false)
			if err := n.group.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n.commits() != one.left {
				t.Errorf("a power failure leaves %d commits, not %d", n.commits(), one.left)
			}
			if err := commit(50); err != nil {
				t.Error("after it:", err)
			}
		})
	}
}

// What waits for the disk does not wait for long.
func TestTheTailIsSynced(t *testing.T) {
	n := newNode(t, 0).found()
	commit := shuffling(n, "maps=100")
	if err := commit(0); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the tail is in the log", func() bool { return len(n.group.store.log.tail.all()) == 0 })
	last, err := n.group.store.log.WAL.LastIndex()
	if applied := n.machine.Summary().Applied; err != nil || last < applied {
		t.Errorf("the log ends at %d, and %d is executed (%v)", last, applied, err)
	}
}

// A tail that is full is written into the log.
func TestTheTailIsBounded(t *testing.T) {
	n := newNode(t, 0).found()
	commit := shuffling(n, "maps=10000")
	n.patient()
	log := n.group.store.log
	before, most := log.tail.all, 0
	for i := range uint64(3000) {
		if err := commit(i); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(before()))
	}
	if left := len(before()); left >= 3000 || most < 500 {
		t.Errorf("of 3000 commits the tail has %d, and had %d", left, most)
	}
	if info, err := os.Stat(filepath.Join(log.dir, tailName)); err != nil || info.Size() > tailBytes {
		t.Errorf("the tail's file has %d bytes (%v)", info.Size(), err)
	}
}

// Once another node has the log, nothing is answered that is not on the disks of a
// majority.
func TestCommitsOfSeveralNodesAreSynced(t *testing.T) {
	n := newNode(t, 0)
	n.fragile = true
	n.found()
	commit := shuffling(n, "maps=100")
	n.patient()
	if err := commit(0); err != nil {
		t.Fatal(err)
	}
	other := newNode(t, 1)
	other.fragile = true
	if err := other.join(n, n.token(1)); err != nil {
		t.Fatal(err)
	}
	nodes := []*node{n, other}
	eventually.True(t, "the other has the log", func() bool { return other.commits() == 1 })
	for i := range uint64(10) {
		before := n.disk.syncs() + other.disk.syncs()
		if err := commit(i + 1); err != nil {
			t.Fatal(err)
		}
		if n.disk.syncs()+other.disk.syncs() == before {
			t.Fatal("a commit was answered without a sync")
		}
	}
	for _, n := range nodes {
		n.kill(true)
	}
	for _, n := range nodes {
		n.start(false)
	}
	eventually.True(t, "all commits are left", func() bool { return n.commits() == 11 && other.commits() == 11 })
}

// A node that no other knows of says how far it is without asking Raft, which may be writing.
func TestANodeAloneKnowsWithoutRaft(t *testing.T) {
	n := newNode(t, 0).found()
	if err := n.group.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.group.store.log.storing.Lock()
	done := make(chan error, 1)
	go func() { done <- put(n, "d") }()
	eventually.True(t, "something is being written", func() bool { return len(n.group.writes) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	if err := n.group.Ready(ctx); err != nil {
		t.Error("while something is written:", err)
	}
	n.group.store.log.storing.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A daemon that is killed leaves its tail to the next one, while the host runs.
func TestAKilledDaemonLeavesItsTail(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	open := func() *journal {
		j, err := openJournal(dir, onDisk(), raft.NewInmemSnapshotStore(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		alone := func() bool { return true }
		j.alone.Store(&alone)
		j.late = time.Hour
		return j
	}
	entry := func(i uint64, mark []byte) []*raft.Log {
		return []*raft.Log{{Index: i, Term: 7, Type: raft.LogCommand, Data: []byte{byte(i)}, Extensions: mark}}
	}
	j := open()
	if err := j.StoreLogs(entry(1, nil)); err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i <= 5; i++ {
		if err := j.StoreLogs(entry(i, fleeting)); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := j.WAL.LastIndex(); last != 1 || err != nil {
		t.Fatalf("nothing is in the tail alone: the log ends at %d, %v", last, err)
	}
	whole := func(j *journal) {
		t.Helper()
		last, err := j.LastIndex()
		if last != 5 || err != nil {
			t.Errorf("the log ends at %d, %v", last, err)
		}
		for i := uint64(1); i <= 5; i++ {
			var l raft.Log
			if err := j.GetLog(i, &l); err != nil || l.Index != i || l.Term != 7 || !bytes.Equal(l.Data, []byte{byte(i)}) || len(l.Extensions) != 0 {
				t.Errorf("entry %d: %+v, %v", i, l, err)
			}
		}
	}
	whole(j)
	if err := errors.Join(j.WAL.Close(), j.tail.file.Close()); err != nil { // nothing more is written
		t.Fatal(err)
	}
	j = open()
	whole(j)
	if last, err := j.WAL.LastIndex(); last != 5 || err != nil {
		t.Errorf("the tail is not in the log after a start: it ends at %d, %v", last, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// sectors are a file of which a power failure leaves each sector as it was at some time.
type sectors struct{ disk, cache []byte }

const sectorBytes = 512

func (s *sectors) WriteAt(b []byte, at int64) (int, error)    { return copy(s.cache[at:], b), nil }
func (s *sectors) ReadAt(b []byte, at int64) (n int, _ error) { return copy(b, s.cache[at:]), io.EOF }
func (s *sectors) Sync() error                                { return nil }
func (s *sectors) Close() error                               { return nil }

// writeBack has some of what was written come onto the disk.
func (s *sectors) writeBack(random *rand.Rand) {
	for at := 0; at < len(s.disk); at += sectorBytes {
		if random.IntN(2) == 0 {
			copy(s.disk[at:at+sectorBytes], s.cache[at:])
		}
	}
}

// Whatever a power failure leaves of a tail, it has the first entries that were written
// since the log was synced, or fewer of them, and no other: none of an earlier time, none
// that is half there, and none whose number another one has by now.
func TestTailsAfterPowerFailures(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	defer func() {
		if t.Failed() {
			t.Log("seed", seed)
		}
	}()
	f := &sectors{make([]byte, tailBytes), make([]byte, tailBytes)}
	written := &tail{file: f}
	written.clear()
	last := raft.Log{Index: 1, Term: 1} // of the log
	var pending []*raft.Log
	found := 0
	for step := range 5000 {
		switch random.IntN(12) {
		case 0: // the log is synced
			if n := len(pending); n > 0 {
				last = *pending[n-1]
			}
			written.clear()
			pending = nil
		case 1, 2: // the host or the daemon ends
			killed := random.IntN(3) == 0
			if !killed {
				f.writeBack(random)
				copy(f.cache, f.disk)
			}
			got := *after(last, f.cache)
			if len(got) > len(pending) || killed && len(got) < len(pending) {
				t.Fatalf("step %d: of %d entries there are %d", step, len(pending), len(got))
			}
			for i, l := range got {
				if want := pending[i]; l.Index != want.Index || l.Term != want.Term || !bytes.Equal(l.Data, want.Data) {
					t.Fatalf("step %d: entry %+v instead of %+v", step, l, want)
				}
				last = *l
			}
			if !killed {
				found += len(got)
			}
			written.clear()
			pending = nil
			last = raft.Log{Index: last.Index + 1, Term: last.Term + 1} // that of the leader now
		case 3:
			f.writeBack(random)
		default:
			prev := last
			if n := len(pending); n > 0 {
				prev = *pending[n-1]
			}
			l := &raft.Log{Index: prev.Index + 1, Term: prev.Term, Type: raft.LogCommand, Data: make([]byte, []int{40, 474, 474, 474}[random.IntN(4)])}
			binary.LittleEndian.PutUint64(l.Data, random.Uint64())
			err := written.add([]*raft.Log{l})
			if errors.Is(err, errTailEnd) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			pending = append(pending, l)
		}
	}
	if found == 0 {
		t.Error("no power failure left any")
	}
}
