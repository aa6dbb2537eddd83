package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// big writes settings that take room.
func big(n *node, i int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), within)
	defer cancel()
	_, err := n.group.Do(ctx, &state.Setting{Key: fmt.Sprintf("k%d", i%8), Value: strings.Repeat(fmt.Sprint(i%10), state.MaxSettingValue)})
	return err
}

// small puts a node's log on a disk of its own.
func small(n *node) {
	n.t.Helper()
	raft := filepath.Join(n.dir, "raft")
	if err := os.Mkdir(raft, 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := syscall.Mount("none", raft, "tmpfs", 0, "size=12m"); err != nil {
		n.t.Fatalf("this test mounts, as root: %v", err)
	}
	n.t.Cleanup(func() { syscall.Unmount(raft, syscall.MNT_DETACH) })
}

// fill has somebody else fill that disk; removing the file makes room again.
func fill(n *node) (filler string) {
	filler = filepath.Join(n.dir, "raft", "filler")
	if err := os.WriteFile(filler, make([]byte, 7<<20), 0o600); err != nil {
		n.t.Logf("filled: %v", err)
	}
	return filler
}

// A disk that is full refuses writes and nothing else; with room on it again
// they go on, also after a new start.
func TestAFullDisk(t *testing.T) {
	n := newNode(t, 0)
	small(n)
	n.found()
	if err := set(n, "before", time.Second); err != nil {
		t.Fatal(err)
	}
	filler := fill(n)
	var err error
	for i := 0; i < 1<<16 && err == nil; i++ {
		err = big(n, i, 2*time.Second)
	}
	if !errors.Is(err, meta.ErrUnavailable) || !errors.Is(err, meta.ErrNoSpace) {
		t.Fatalf("on a full disk: %v", err)
	}
	t.Log(err)
	if v := n.machine.Setting("k"); v != "before" {
		t.Errorf("reads are disturbed: %q", v)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := set(n, "after", 15*time.Second); err != nil {
		t.Errorf("with room again: %v", err)
	}
	n.stop()
	n.start(false)
	if err := set(n, "again", 15*time.Second); err != nil {
		t.Errorf("after a new start: %v", err)
	}
}

// A leader whose disk is full leaves the lead to others, and nobody who writes by
// them hears of it. It has what they wrote once there is room.
func TestALeaderWithAFullDisk(t *testing.T) {
	nodes := clusterWith(t, 3, small)
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	n, rest := leading(t, nodes)
	filler := fill(n)
	for i := range 9 * segmentBytes / state.MaxSettingValue / 10 {
		if err := big(n, i, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for w := range 16 { // together they write more at a time than is left at last
		writers.Go(func() {
			for i := 0; !n.group.store.log.failing.Load() && !t.Failed(); i++ {
				if err := big(rest[w%2], i, time.Minute); err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
	for i := range 20 {
		if err := set(rest[i%2], fmt.Sprint(i), time.Minute); err != nil {
			t.Errorf("write %d beside it: %v", i, err)
		}
	}
	if n.group.Leads() {
		t.Error("it leads")
	}
	if err := set(n, "by the others", 2*time.Second); err == nil {
		t.Error("it has executed what it cannot have written")
	}
	stands := func(n *node) time.Duration { return n.group.raft.ReloadableConfig().HeartbeatTimeout }
	eventually.True(t, "it lets others stand first", func() bool { return stands(n) > 2*stands(rest[0]) && stands(n) > 2*stands(rest[1]) })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes, "by the others")
	eventually.True(t, "it stands as others do", func() bool { return stands(n) <= stands(rest[0]) })
	if err := set(n, "after", time.Minute); err != nil {
		t.Error(err)
	}
	agree(t, nodes, "after")
}

// A disk that cannot be written for a while ends neither a leader nor who follows
// the next one, whose term is to be noted: others go on, and it has what they wrote
// when its disk is well. So does one that is ended meanwhile, or is killed and loses
// what it has not synced.
func TestADiskThatCannotBeWritten(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.fragile = true })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for i, fault := range []error{syscall.EIO, syscall.EROFS, syscall.ENOSPC} {
		n, rest := leading(t, nodes)
		n.disk.fail(fault, false)
		value := fault.Error()
		for _, other := range rest {
			setInTime(other, value)
		}
		agree(t, rest, value)
		eventually.True(t, "it says that its log is not written", func() bool { return n.group.store.log.failing.Load() })
		switch i {
		case 0:
			n.disk.fail(nil, false)
		case 1:
			n.kill(true)
			n.start(false)
		case 2:
			n.stop()
			n.start(false)
		}
		agree(t, nodes, value)
		setInTime(n, "after")
		eventually.True(t, "all votes count", func() bool { return vote(nodes, 3) })
	}
}

// What was acknowledged is on the disks of a majority: all nodes lose their power at
// once, and with it what they had not synced.
func TestAPowerFailure(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.fragile = true })
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for _, value := range []string{"a", "b"} {
		for i := range 10 {
			setInTime(nodes[i%3], fmt.Sprint(value, i))
		}
		for _, n := range nodes {
			n.kill(true)
		}
		for _, n := range nodes {
			n.start(false)
		}
		agree(t, nodes, value+"9")
	}
}

// A log that was cut short anywhere, as by a crash, is opened, and a node gets
// from the others what it lacks.
func TestATornLog(t *testing.T) {
	nodes, _ := voting(t, 3)
	for i := range 50 {
		if err := set(nodes[0], fmt.Sprint(i), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	_, rest := leading(t, nodes)
	n := rest[0]
	for round := range 6 {
		n.stop()
		segments, err := filepath.Glob(filepath.Join(n.dir, "raft", "log", "*.wal"))
		if err != nil || len(segments) == 0 {
			t.Fatal(err, segments)
		}
		size := rand.Int64N(4000)
		if err := os.Truncate(segments[len(segments)-1], size); err != nil {
			t.Fatal(err)
		}
		n.start(false)
		value := fmt.Sprint("round ", round)
		if err := set(n, value, 10*time.Second); err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		agree(t, nodes, value)
	}
}

// snapshot has a node keep so many entries of its log beside a new snapshot.
func (n *node) snapshot(trailing uint64) {
	n.t.Helper()
	c := n.group.raft.ReloadableConfig()
	c.TrailingLogs = trailing
	if err := errors.Join(n.group.raft.ReloadConfig(c), n.group.raft.Snapshot().Error()); err != nil {
		n.t.Fatal(err)
	}
}

// A node that was away while the log went on, and was cut, gets a snapshot. The
// log gives out what was cut from it until that is a whole segment.
func TestANodeThatWasAwayForLong(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	rest[0].stop()
	for i := range 2 * segmentBytes / state.MaxSettingValue {
		if err := big(leader, i, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*node{leader, rest[1]} {
		n.snapshot(5)
	}
	if err := set(leader, "last", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if first, err := leader.group.store.log.FirstIndex(); err != nil || first < 100 {
		t.Fatalf("the leader has its log from %d on (%v)", first, err)
	}
	rest[0].start(false)
	agree(t, nodes, "last")
	if first, err := rest[0].group.store.log.FirstIndex(); err != nil || first < 100 {
		t.Errorf("it got the log from %d on, and no snapshot (%v)", first, err)
	}
}

// The log keeps what a node that is away for a moment may lack, and not more.
func TestTheLogIsCut(t *testing.T) {
	n := newNode(t, 0).found()
	const writers = 256
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := 0; i < 3*trailing/2/writers && err == nil; i++ {
				_, err = n.group.Do(t.Context(), &state.Setting{Key: fmt.Sprint("k", w), Value: fmt.Sprint(i)})
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if err := n.group.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	log := n.group.store.log
	first, err := log.FirstIndex()
	last, also := log.LastIndex()
	if err := errors.Join(err, also); err != nil || last-first+1 != trailing || last < 3*trailing/2 {
		t.Errorf("the log goes from %d to %d (%v)", first, last, err)
	}
}

// spoil damages the state in a node's snapshots, the newest first, so many.
func (n *node) spoil(many int) {
	n.t.Helper()
	all, err := filepath.Glob(filepath.Join(n.dir, "raft", "snapshots", "*", "state.bin"))
	if err != nil || len(all) < many {
		n.t.Fatal(all, err)
	}
	for _, path := range all[len(all)-many:] {
		text, err := os.ReadFile(path)
		if err != nil {
			n.t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
}

func TestDamagedSnapshots(t *testing.T) {
	for _, tt := range []struct {
		name     string
		trailing uint64 // entries of the log that are kept
		spoilt   int
		says     string
	}{
		{"the last, and the log reaches back", 1000, 1, ""},
		{"the last, and the log does not reach back", 1, 1, "the log goes on"},
		{"all", 1, 2, "none of the 2 snapshots"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, 0).found()
			for i, name := range []string{"a", "b", "c"} {
				for range 10 {
					if err := put(n, fmt.Sprint(name, rand.Uint32())); err != nil {
						t.Fatal(err)
					}
				}
				if err := set(n, name, time.Second); err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					n.snapshot(tt.trailing)
				}
			}
			c := n.group.raft.ReloadableConfig()
			c.TrailingLogs = tt.trailing
			if err := n.group.raft.ReloadConfig(c); err != nil {
				t.Fatal(err)
			}
			n.stop() // makes the third, of which the last two are kept
			n.spoil(tt.spoilt)
			err := n.try(false)
			if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				t.Log(err)
				n.group = nil
				return
			}
			if err := n.group.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v := n.machine.Setting("k"); v != "c" {
				t.Errorf("it knows %q", v)
			}
		})
	}
}

// Clocks that jump, all of them, keep nobody out, and let nobody in for longer.
func TestClocksThatJump(t *testing.T) {
	var ahead atomic.Int64
	nodes := clusterWith(t, 3, func(n *node) {
		n.ahead = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	eventually.True(t, "all votes are given", func() bool { return vote(nodes, 3) })
	for _, jump := range []time.Duration{48 * time.Hour, -time.Hour, 0} {
		ahead.Store(int64(jump))
		if err := set(nodes[1], fmt.Sprint(jump), 5*time.Second); err != nil {
			t.Fatalf("%v ahead: %v", jump, err)
		}
		agree(t, nodes, fmt.Sprint(jump))
	}
	joined := newNode(t, 9)
	if err := joined.join(nodes[0], nodes[0].token(1)); err != nil {
		t.Errorf("after a clock was ahead for a moment nobody can join: %v", err)
	}
}

// Of a segment for which there was no room nothing is left, so that it can be
// made by the same name later: a leader's log that is to be cut needs that.
func TestNothingIsLeftOfASegment(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	disk := tidy{walfs.New()}
	if _, err := disk.Create(dir, "segment", segmentBytes); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("made in 1 MiB: %v", err)
	}
	f, err := disk.Create(dir, "segment", 64<<10)
	if err != nil {
		t.Fatalf("with room: %v", err)
	}
	if _, err := disk.Create(dir, "segment", 64<<10); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A log that begins a new segment with an entry that it had acknowledged has it
// whenever the process ends, and no entry twice.
func TestUnsealedLogKeepsItsLastEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	open := func() *journal {
		j, err := openJournal(dir, onDisk(), raft.NewInmemSnapshotStore(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	entry := func(i uint64) *raft.Log {
		return &raft.Log{Index: i, Term: 7, Type: raft.LogCommand, Data: []byte{0, 255, byte(i)}}
	}
	whole := func(when string, j *journal) {
		t.Helper()
		if last, err := j.LastIndex(); last != 3 || err != nil {
			t.Errorf("%s: the log ends at %d, %v", when, last, err)
		}
		for i := uint64(1); i <= 3; i++ {
			var l raft.Log
			must(j.GetLog(i, &l))
			if want := entry(i); l.Index != i || l.Term != 7 || l.Type != want.Type || !bytes.Equal(l.Data, want.Data) {
				t.Errorf("%s: entry %d is %+v", when, i, l)
			}
		}
		if _, err := os.Stat(j.aside()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: an entry is aside (%v)", when, err)
		}
	}
	j := open()
	must(j.StoreLogs([]*raft.Log{entry(1), entry(2), entry(3)}))
	must(j.putAside(entry(3)))
	must(j.Close())
	j = open()
	whole("ended before it was forgotten", j)
	must(j.putAside(entry(3)))
	must(j.DeleteRange(3, 3))
	must(j.Close())
	j = open()
	whole("ended before it was written again", j)
	must(j.Close())
	must(os.WriteFile(j.aside(), []byte("{"), 0o600))
	var d damage
	if _, err := openJournal(dir, onDisk(), raft.NewInmemSnapshotStore(), slog.New(slog.DiscardHandler)); !errors.As(err, &d) || !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("with damage aside: %v", err)
	}
}

// A log that begins after a snapshot knows the term of the entry that this ends
// with, and of no other that is gone.
func TestLogAfterASnapshot(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, onDisk(), true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	sink, err := s.snapshots.Create(raft.SnapshotVersionMax, 71, 5, raft.Configuration{}, 60, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.log.StoreLogs([]*raft.Log{{Index: 72, Term: 6}, {Index: 73, Term: 6}}); err != nil {
		t.Fatal(err)
	}
	for index, term := range map[uint64]uint64{70: 0, 71: 5, 72: 6, 73: 6, 74: 0} {
		var l raft.Log
		err := s.log.GetLog(index, &l)
		if term == 0 && !errors.Is(err, raft.ErrLogNotFound) || term > 0 && (err != nil || l.Index != index || l.Term != term) {
			t.Errorf("entry %d: %+v, %v", index, l, err)
		}
	}
}

// A heartbeat that is late finds a log that is closed, and does not end the process.
func TestLogIsClosedUnderAHeartbeat(t *testing.T) {
	j, err := openJournal(t.TempDir(), onDisk(), raft.NewInmemSnapshotStore(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	begun, done := make(chan struct{}), make(chan error)
	go func() {
		for term := range uint64(200) {
			if err := j.SetUint64([]byte("CurrentTerm"), term); err != nil {
				done <- err
				return
			}
			if term == 2 {
				close(begun)
			}
		}
		done <- j.SetUint64([]byte("CurrentTerm"), 1000)
	}()
	<-begun
	if err := errors.Join(j.Close(), <-done); err != nil {
		t.Error(err)
	}
}
