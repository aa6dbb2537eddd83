package group

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// segmentBytes is how much disk the log takes at a time, and takes ahead: the
// log of a day's metadata, and little enough for a laptop's state directory.
const segmentBytes = 4 << 20

// room is the size of a new segment, and a little.
const room = segmentBytes + 1<<20

// A journal is Raft's log and its votes on disk. It is a wal.WAL that outlives a
// disk that is full, or cannot be written for a while, which would end another WAL in
// three ways. The file of a segment for which there was no room stays, and the segment
// cannot be made later: see tidy. The log takes nothing more, now and after a new start,
// for it has sealed the segment before: see unseal. And Raft panics if it cannot note its term: see
// SetUint64. It also knows the entry that a snapshot ends with: see GetLog.
//
// Where no other node has the log, the WAL may lack its tail for a moment: see mayWait.
//
// The lock storing is held while the log or its tail is written, so for as long as the disk
// takes. That of noting is held, for reading, while a term or a vote is noted, and as a whole
// while the journal is closed, with storing taken under it.
type journal struct {
	*wal.WAL
	tail      *tail
	recent    recent
	logEnds   logEnds
	storing   sync.Mutex
	late      time.Duration               // that the tail waits for the disk
	timer     *time.Timer                 // until then; storing guards it
	alone     atomic.Pointer[func() bool] // whether no other node has the log; nil until Raft runs
	snapshots raft.SnapshotStore
	dir       string
	log       *slog.Logger
	closing   chan struct{}
	failing   atomic.Bool           // it was not written, and a person was told
	cause     atomic.Pointer[error] // of that, while it is so
	changed   chan struct{}         // has something after failing was set or cleared
	lied      atomic.Bool           // of a term that was not noted; so nothing is noted any more
	noting    sync.RWMutex
}

// openJournal opens the log, and brings into it what an earlier daemon had beside it. Its error
// is damage if the log is there and cannot be read.
func openJournal(dir string, on medium, snapshots raft.SnapshotStore, log *slog.Logger) (*journal, error) {
	if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	segments := segment.NewFiler(dir, tidy{on.files})
	w, err := wal.Open(dir, wal.WithMetaStore(on.meta()), wal.WithSegmentFiler(segments), wal.WithSegmentSize(segmentBytes), wal.WithLogger(hclogger(log)))
	if err != nil && isDamage(err) {
		return nil, damage{fmt.Errorf("log %s %w: %w", dir, meta.ErrCorrupt, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w; it takes %d MiB", dir, err, 2*segmentBytes>>20)
	}
	j := &journal{WAL: w, snapshots: snapshots, dir: dir, log: log, closing: make(chan struct{}), changed: make(chan struct{}, 1), late: tailTime}
	err = j.takeBack()
	if err == nil {
		err = j.takeTail(on.files)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", dir, err), w.Close())
	}
	return j, nil
}

// takeTail has in the WAL what a daemon that was killed had only in the tail.
func (j *journal) takeTail(on types.VFS) error {
	var last raft.Log
	index, err := j.WAL.LastIndex()
	if err == nil && index > 0 {
		err = j.WAL.GetLog(index, &last)
	}
	if err != nil {
		return err
	}
	if j.tail, err = openTail(j.dir, on, last); err != nil {
		return err
	}
	if index == 0 {
		j.tail.clear() // of a log that is gone
	}
	return j.sync()
}

// A damage is why a log or snapshots cannot be used, and never will.
type damage struct{ error }

func (d damage) Unwrap() error { return d.error }

// isDamage reports whether err means that the log's bytes are wrong, rather than that
// the system cannot read or write them now. A missing segment is damage.
func isDamage(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, os.ErrNotExist)
}

// A tidy file system leaves nothing of a segment for which there was no room: the
// WAL makes it anew, by the same name, once there is.
type tidy struct{ types.VFS }

// Create implements types.VFS.
func (t tidy) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := t.VFS.Create(dir, name, size)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, t.Delete(dir, name))
	}
	return f, err
}

// giveUp ends waiting for the disk, when Raft is about to end.
func (j *journal) giveUp() { close(j.closing) }

// StoreLog implements raft.LogStore.
func (j *journal) StoreLog(l *raft.Log) error { return j.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (j *journal) StoreLogs(logs []*raft.Log) error {
	if j.lied.Load() {
		return errClosing
	}
	wait := j.mayWait(logs)
	for _, l := range logs {
		l.Extensions = nil // the mark is for this node alone
	}
	j.storing.Lock()
	defer j.storing.Unlock()
	if wait && j.tail.add(logs) == nil {
		if len(j.tail.all()) == len(logs) {
			j.timer = time.AfterFunc(j.late, j.syncLate)
		}
		return nil
	}
	err := j.store(logs)
	if err == nil {
		j.recent.add(logs)
		j.logEnds.stores(logs[len(logs)-1].Index)
	}
	return err
}

// mayWait reports whether entries may be in the tail for now. Raft asks for an entry to be
// stored and changes its configuration in one goroutine, so that no other node has the log
// until an entry was stored by which it gets it; and that one does not wait.
func (j *journal) mayWait(logs []*raft.Log) bool {
	alone := j.alone.Load()
	return alone != nil && !j.failing.Load() && !slices.ContainsFunc(logs, func(l *raft.Log) bool {
		return !bytes.Equal(l.Extensions, fleeting)
	}) && (*alone)()
}

// store writes entries after those in the tail. The lock storing is held.
func (j *journal) store(logs []*raft.Log) error {
	all := append(slices.Clip(j.tail.all()), logs...)
	if len(all) == 0 {
		return nil
	}
	err := j.WAL.StoreLogs(all)
	if errors.Is(err, wal.ErrSealed) {
		err = j.unseal(all)
	}
	if err != nil {
		return j.told(err)
	}
	j.tail.clear()
	if j.timer != nil {
		j.timer.Stop()
	}
	if j.failing.Swap(false) {
		j.log.Info("the cluster's log is written again", "dir", j.dir)
		j.signal()
	}
	return nil
}

// sync has all of the log on the disk.
func (j *journal) sync() error {
	if len(j.tail.all()) == 0 { // then all that was executed is
		return nil
	}
	j.storing.Lock()
	defer j.storing.Unlock()
	return j.store(nil)
}

// syncLate is sync, until it succeeds.
func (j *journal) syncLate() {
	if j.sync() != nil && !j.lied.Load() {
		time.AfterFunc(time.Second, j.syncLate)
	}
}

// LastIndex implements raft.LogStore.
func (j *journal) LastIndex() (uint64, error) {
	if all := j.tail.all(); len(all) > 0 {
		return all[len(all)-1].Index, nil
	}
	return j.WAL.LastIndex()
}

// DeleteRange implements raft.LogStore.
func (j *journal) DeleteRange(first, last uint64) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	if err := j.store(nil); err != nil {
		return err
	}
	j.recent.forget()
	return j.WAL.DeleteRange(first, last)
}

// unseal begins a new segment when there is room, which the WAL does when it is
// asked to forget its last entry, and writes that entry again. It was acknowledged,
// so it is kept beside the log meanwhile.
func (j *journal) unseal(logs []*raft.Log) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(j.dir, &disk); err != nil {
		return err
	}
	if disk.Bavail*uint64(disk.Bsize) < room {
		return unix.ENOSPC
	}
	index, err := j.WAL.LastIndex()
	if err != nil {
		return err
	}
	var last raft.Log
	if err := j.WAL.GetLog(index, &last); err != nil {
		return err
	}
	last.Data, last.Extensions = slices.Clone(last.Data), slices.Clone(last.Extensions)
	if err := j.putAside(&last); err != nil {
		return err
	}
	if err := j.WAL.DeleteRange(index, index); err != nil {
		return err
	}
	if err := j.WAL.StoreLogs(append([]*raft.Log{&last}, logs...)); err != nil {
		return err
	}
	return j.noneAside()
}

// aside has the entry that unseal writes again.
func (j *journal) aside() string { return filepath.Join(j.dir, "aside") }

func (j *journal) putAside(l *raft.Log) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return durable.WriteFile(j.aside(), text, 0600)
}

func (j *journal) noneAside() error {
	if err := os.Remove(j.aside()); err != nil {
		return err
	}
	return durable.SyncDir(j.dir)
}

// takeBack ends what unseal had begun when the machine or this process ended.
func (j *journal) takeBack() error {
	text, err := os.ReadFile(j.aside())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var l raft.Log
	if err := json.Unmarshal(text, &l); err != nil {
		return damage{fmt.Errorf("%s %w: %w", j.aside(), meta.ErrCorrupt, err)}
	}
	last, err := j.WAL.LastIndex()
	if err != nil {
		return err
	}
	if l.Index == last+1 {
		if err := j.WAL.StoreLogs([]*raft.Log{&l}); err != nil {
			return err
		}
	}
	return j.noneAside()
}

// GetLog implements raft.LogStore. Of the entry that a snapshot ends with, and after
// which the log goes on, it knows the term alone, as Raft should: a leader that
// did not hear that the first entries after it have arrived asks for that, and
// where the answer is that there is no such entry, it goes back to ever earlier
// ones, for ever. No follower gets this one in place of the real one: a leader asks for
// the entry before, which it has not, and then sends the snapshot.
func (j *journal) GetLog(index uint64, l *raft.Log) error {
	if is := j.tail.get(index); is != nil {
		*l = *is
		return nil
	}
	if is := j.recent.get(index); is != nil {
		*l = *is
		return nil
	}
	err := j.WAL.GetLog(index, l)
	if !errors.Is(err, raft.ErrLogNotFound) || index < 2 {
		return err
	}
	first, ferr := j.FirstIndex()
	if ferr != nil || first != index+1 {
		return err
	}
	all, lerr := j.snapshots.List()
	if lerr != nil {
		return err
	}
	for _, s := range all {
		if s.Index == index {
			*l = raft.Log{Index: index, Term: s.Term, Type: raft.LogNoop}
			return nil
		}
	}
	return err
}

// told tells a person when the disk is full or cannot be written, once.
func (j *journal) told(err error) error {
	switch {
	case err == nil || errors.Is(err, wal.ErrClosed):
		return err
	case errors.Is(err, unix.ENOSPC):
		err = fmt.Errorf("the disk of %s is full (%w); make room for %s there", j.dir, meta.ErrNoSpace, meta.FormatBytes(room))
	default:
		err = fmt.Errorf("write the log in %s: %w; see whether that disk fails, or is mounted read-only: dmesg", j.dir, err)
	}
	j.cause.Store(&err)
	if !j.failing.Swap(true) {
		j.log.Error("the cluster's log cannot be written on this node", "cause", err)
		j.signal()
	}
	return err
}

// unwritten is why the log cannot be written, nil if it could when that was last tried.
func (j *journal) unwritten() error {
	if cause := j.cause.Load(); cause != nil && j.failing.Load() {
		return *cause
	}
	return nil
}

func (j *journal) signal() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

var errClosing = errors.New("the log is being closed")

// SetUint64 implements raft.StableStore. It waits until it can write: this node then
// takes no part in Raft, and what it knows can be read.
func (j *journal) SetUint64(key []byte, value uint64) error {
	for {
		err := j.note(func() error { return j.WAL.SetUint64(key, value) })
		if err == nil || errors.Is(err, errClosing) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-j.closing:
			j.lied.Store(true) // rather than have Raft panic; nothing is noted after it, and so no vote given
			return nil
		}
	}
}

// Set implements raft.StableStore.
func (j *journal) Set(key, value []byte) error {
	return j.note(func() error { return j.WAL.Set(key, value) })
}

func (j *journal) note(do func() error) error {
	j.noting.RLock()
	defer j.noting.RUnlock()
	if j.lied.Load() {
		return errClosing
	}
	return j.told(do())
}

// Close implements io.Closer. Raft does not wait for a heartbeat that came just before it
// ended, and that notes its term.
func (j *journal) Close() error {
	j.noting.Lock()
	defer j.noting.Unlock()
	j.lied.Store(true)
	return errors.Join(j.sync(), j.tail.file.Close(), j.WAL.Close())
}
