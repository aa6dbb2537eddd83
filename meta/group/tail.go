package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

// A tail is the end of a log that no other node has: commands of which nothing is left to
// be known once the host has lost its power, and those that only remove. They are answered when they are written to a
// file beside the log, which outlives the daemon, and is not synced. Before anything else
// is written, and after tailTime at the latest, they are in the log as all others are.
//
// After a power failure each page of the file may be an old one or a new one. So an entry
// has a sum, and counts if it has the number after the one before, and no earlier term:
// there never were two entries of one number and one term.
//
// One goroutine at a time writes to a tail; any may read it.
type tail struct {
	file    types.WritableFile
	end     int64
	entries atomic.Pointer[[]*raft.Log] // in order
}

const (
	tailName  = "tail"
	tailBytes = 256 << 10 // on the disk, taken ahead: a thousand commands, or ten of a thousand maps
	tailTime  = 100 * time.Millisecond
)

// fleeting marks an entry that may be in the tail. The mark is not written.
var fleeting = []byte("fleeting")

var (
	codec      wal.BinaryCodec
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errTailEnd = errors.New("the tail of the log has no room")
)

// openTail opens the tail of a log that ends with last.
func openTail(dir string, on types.VFS, last raft.Log) (*tail, error) {
	f, err := on.OpenWriter(dir, tailName)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = on.Create(dir, tailName, tailBytes); err == nil {
			err = f.Sync() // its name too
		}
	}
	t := &tail{file: f}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, tailBytes))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.entries.Store(after(last, b))
	return t, nil
}

// after are the entries in a tail's file that follow the last of the log.
func after(last raft.Log, b []byte) *[]*raft.Log {
	var all []*raft.Log
	for len(b) > 8 {
		size, sum := int64(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
		if b = b[8:]; size == 0 || size > int64(len(b)) || crc32.Checksum(b[:size], castagnoli) != sum {
			break
		}
		l := new(raft.Log)
		if codec.Decode(b[:size], l) != nil {
			break
		}
		b = b[size:]
		if l.Index <= last.Index { // the log has it
			continue
		}
		if l.Index != last.Index+1 || l.Term < last.Term {
			break
		}
		all, last = append(all, l), *l
	}
	return &all
}

// all are the entries.
func (t *tail) all() []*raft.Log { return *t.entries.Load() }

// get is the entry of a number, nil if it is not here.
func (t *tail) get(index uint64) *raft.Log {
	all := t.all()
	if len(all) == 0 || index < all[0].Index || index > all[len(all)-1].Index {
		return nil
	}
	return all[index-all[0].Index]
}

// add takes entries, all or none.
func (t *tail) add(logs []*raft.Log) error {
	var b bytes.Buffer
	for _, l := range logs {
		begin := b.Len()
		b.Write(make([]byte, 8))
		if err := codec.Encode(l, &b); err != nil {
			return err
		}
		text := b.Bytes()[begin:]
		binary.LittleEndian.PutUint32(text, uint32(len(text)-8))
		binary.LittleEndian.PutUint32(text[4:], crc32.Checksum(text[8:], castagnoli))
	}
	if t.end+int64(b.Len()) > tailBytes {
		return errTailEnd
	}
	if _, err := t.file.WriteAt(b.Bytes(), t.end); err != nil {
		return err
	}
	t.end += int64(b.Len())
	all := append(t.all(), logs...) // readers of the old one see no more than it had
	t.entries.Store(&all)
	return nil
}

// clear says that the log has the entries.
func (t *tail) clear() {
	t.end = 0
	t.entries.Store(new([]*raft.Log))
}
