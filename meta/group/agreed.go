package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"rankfs/meta"
)

// agreed is the index up to which this node's log is known to be agreed on, in a small file
// beside it. Raft knows that from the leader alone, so a node that was killed, and
// finds no leader, would know no more than its last snapshot.
//
// It is written without a sync at each command that is executed: it outlives the
// daemon, and the machine in most cases. An older value is as true, and a newer one
// never meets a log that ends before, for that was synced first; and if it does,
// because the disk lost something, the log's end counts.
type agreed struct {
	file  *os.File
	log   *slog.Logger
	last  uint64
	wrong bool // it could not be written, and a person was told
}

// openAgreed opens the file of a log that ends with an index.
func openAgreed(dir string, end uint64, log *slog.Logger) (*agreed, error) {
	f, err := os.OpenFile(filepath.Join(dir, "agreed"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open what is agreed on: %w", err)
	}
	a := &agreed{file: f, log: log}
	var b [12]byte
	_, err = f.ReadAt(b[:], 0)
	switch {
	case errors.Is(err, io.EOF): // it is new
	case err != nil:
		return nil, errors.Join(fmt.Errorf("read what is agreed on: %w", err), f.Close())
	case crc32.ChecksumIEEE(b[:8]) != binary.LittleEndian.Uint32(b[8:]):
		log.Warn("how far the log is agreed on is not known: the leader will say", "file", f.Name(), "cause", meta.ErrCorrupt)
	default:
		a.last = binary.LittleEndian.Uint64(b[:])
	}
	if a.last > end { // the log was cut, and other entries take these numbers
		a.note(end)
	}
	return a, nil
}

// note has the log be agreed on up to an index.
func (a *agreed) note(index uint64) {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], index)
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	a.last = index
	_, err := a.file.WriteAt(b[:], 0)
	if err != nil && !a.wrong {
		a.log.Warn("how far the log is agreed on is not noted: after a crash this node needs the others to know it", "cause", err)
	}
	a.wrong = err != nil
}

func (a *agreed) close() error { return a.file.Close() }
