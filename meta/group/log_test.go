package group

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A log that was cut short anywhere, as by a crash, is opened, and a node gets
// from the others what it lacks.
func TestATornLog(t *testing.T) {
	nodes, _ := voting(t, 3)
	for i := range 50 {
		if err := set(nodes[0], fmt.Sprint(i), enough); err != nil {
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
		if err := set(n, value, enough); err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		agree(t, nodes, value)
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

// What was written last is read without the disk, unless it is long; and not once it is
// removed, nor in place of what is written in its stead.
func TestRecentEntriesAreInMemory(t *testing.T) {
	j, err := openJournal(t.TempDir(), onDisk(), raft.NewInmemSnapshotStore(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	write := func(index, term uint64, bytes int) {
		if err := j.StoreLog(&raft.Log{Index: index, Term: term, Data: make([]byte, bytes)}); err != nil {
			t.Fatal(err)
		}
	}
	const last = 2 * recentEntries
	for i := range uint64(last) {
		write(i+1, 1, 100)
	}
	write(last+1, 1, recentBytes+1)
	for _, tt := range []struct {
		index uint64
		here  bool
	}{{last - recentEntries + 1, false}, {last - recentEntries + 2, true}, {last, true}, {last + 1, false}} {
		var l raft.Log
		if err := j.GetLog(tt.index, &l); err != nil || l.Index != tt.index || l.Term != 1 {
			t.Errorf("entry %d: %+v, %v", tt.index, l, err)
		}
		if is := j.recent.get(tt.index); (is != nil) != tt.here {
			t.Errorf("entry %d is in memory: %v", tt.index, is != nil)
		}
	}
	if err := j.DeleteRange(last, last+1); err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := j.GetLog(last, &l); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that was removed: %+v, %v", l, err)
	}
	write(last, 2, 100)
	if err := j.GetLog(last, &l); err != nil || l.Term != 2 {
		t.Errorf("an entry in its stead: %+v, %v", l, err)
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
