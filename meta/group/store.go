package group

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"rankfs/meta"
)

// A store is what Raft keeps on disk: the log and two snapshots.
type store struct {
	log       *journal
	snapshots *raft.FileSnapshotStore
}

// segmentBytes is how much disk the log takes at a time, and takes ahead: the
// log of a day's metadata, and little enough for a laptop's state directory.
const segmentBytes = 4 << 20

func openStore(dir string, log *slog.Logger) (*store, error) {
	folder := filepath.Join(dir, "log")
	if err := os.MkdirAll(folder, 0700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	w, err := wal.Open(folder, wal.WithSegmentSize(segmentBytes), wal.WithLogger(hclogger(log)))
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w; it takes %d MiB", folder, err, 2*segmentBytes>>20)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, hclogger(log))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshots: %w", err), w.Close())
	}
	j := &journal{WAL: w, dir: folder, log: log, closing: make(chan struct{})}
	if err := check(w, snapshots); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: if other nodes of the cluster are up, remove this one there (rankfs node rm) and have it join "+
			"with another state directory; if it is alone, start it with another and create its datasets again; %s is left as it is", err, dir), w.Close())
	}
	return &store{j, snapshots}, nil
}

// check finds out whether a snapshot and the log after it are whole: Raft takes
// an older snapshot if the last cannot be read, and panics if the log does not go
// on from there.
func check(log *wal.WAL, snapshots *raft.FileSnapshotStore) error {
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
			return fmt.Errorf("snapshot %s is whole, but the log goes on %d commands later (%w)", s.ID, first-s.Index-1, meta.ErrCorrupt)
		}
		return nil
	}
	if len(all) > 0 || first > 1 {
		return fmt.Errorf("none of the %d snapshots of the cluster's state is whole (%w)", len(all), meta.ErrCorrupt)
	}
	return nil
}

// began reports whether this node was part of a cluster before.
func (s *store) began() (bool, error) {
	return raft.HasExistingState(s.log, s.log, s.snapshots)
}

func (s *store) close() error { return s.log.Close() }
