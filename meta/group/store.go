package group

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hashicorp/raft"

	"rankfs/meta"
)

// A store is the disk of Raft: the log and two snapshots; and how far the
// log is agreed on.
type store struct {
	log       *journal
	snapshots *raft.FileSnapshotStore
	agreed    *agreed
	logEnds   *logEnds
}

// openStore opens what is in dir. Of a node that is alone there is no other copy.
func openStore(dir string, on medium, alone bool, log *slog.Logger) (*store, error) {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, hclogger(log))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	journal, err := openJournal(filepath.Join(dir, "log"), on, snapshots, log)
	if err != nil {
		return nil, err
	}
	if err := check(journal, snapshots, alone); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	end, err := journal.LastIndex()
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	agreed, err := openAgreed(journal.dir, end, log)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return &store{journal, snapshots, agreed, &journal.logEnds}, nil
}

// check finds out whether a snapshot and the log after it are whole: Raft takes
// an older snapshot if the last cannot be read, and panics if the log does not go
// on from there.
func check(log *journal, snapshots *raft.FileSnapshotStore, alone bool) error {
	all, err := snapshots.List()
	if err != nil {
		return err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	for _, s := range all {
		_, content, err := snapshots.Open(s.ID)
		if err != nil {
			continue
		}
		if err := content.Close(); err != nil {
			return err
		}
		if first > s.Index+1 {
			return damage{fmt.Errorf("snapshot %s is whole, but the log goes on %d commands later (%w)", s.ID, first-s.Index-1, meta.ErrCorrupt)}
		}
		return goOn(log, s.Index, alone)
	}
	if len(all) > 0 || first > 1 {
		return damage{fmt.Errorf("none of the %d snapshots of the cluster's state is whole (%w)", len(all), meta.ErrCorrupt)}
	}
	return nil
}

// goOn sees to it that a log can go on after a snapshot of that index. One that
// ends before it has lost its end, or the node was stopped while it got the
// snapshot, which cannot be told apart; and the WAL takes no entry that is not the
// next. What a node that is alone has lost, no other node relies on.
func goOn(log *journal, index uint64, alone bool) error {
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil || last == 0 || last >= index {
		return err
	}
	if !alone {
		return damage{fmt.Errorf("the log ends %d commands before its snapshot (%w)", index-last, meta.ErrCorrupt)}
	}
	return log.DeleteRange(first, last)
}

// began reports whether this node was part of a cluster before.
func (s *store) began() (bool, error) {
	return raft.HasExistingState(s.log, s.log, s.snapshots)
}

func (s *store) close() error { return errors.Join(s.agreed.close(), s.log.Close()) }
