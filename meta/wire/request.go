package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// The bounds of a request.
const (
	MaxRuns  = 1 << 20 // 16 MiB of them
	maxBytes = 1 << 40 // far above any batch
)

const (
	requestSize = 64
	runSize     = 16
	sumSize     = 8
)

// keptBit stands beside the time that a request may wait. To a node that does not
// know it, it is a very long time, and more than is asked for comes of it: the
// bytes, fetched.
const keptBit = 1 << 31

// A Request asks a node for something: what, says the number of a call that both
// ends know.
type Request struct {
	Call  uint8
	Kept  bool          // wants no more than what is at hand
	Wait  time.Duration // for its turn; the node answers that it is busy otherwise
	Bytes uint64        // what the data comes to, if that is known before
	ID    [32]byte      // what it is about
	Runs  []Run         // and which of it
}

func (q Request) header(seq uint32) (header, error) {
	if len(q.Runs) > MaxRuns || q.Bytes > maxBytes {
		return header{}, fmt.Errorf("request for %d bytes in %d runs %w: ask for %d runs at most", q.Bytes, len(q.Runs), meta.ErrInvalid, MaxRuns)
	}
	return header{
		call: q.Call, count: uint32(len(q.Runs)), wait: uint32(min(max(q.Wait, 0), time.Hour).Milliseconds()),
		kept: q.Kept, seq: seq, bytes: q.Bytes, id: q.ID,
	}, checkRuns(q.Runs)
}

// A header is a request without its runs, as it is sent.
type header struct {
	call  uint8
	count uint32 // runs that follow
	wait  uint32 // milliseconds
	kept  bool
	seq   uint32 // which request of its connection it is
	bytes uint64
	id    [32]byte
}

func (q header) encode() (b [requestSize]byte) {
	b[0], b[1], b[2] = 'r', 'k', q.call
	binary.LittleEndian.PutUint32(b[4:], q.count)
	wait := q.wait
	if q.kept {
		wait |= keptBit
	}
	binary.LittleEndian.PutUint32(b[8:], wait)
	binary.LittleEndian.PutUint32(b[12:], q.seq)
	binary.LittleEndian.PutUint64(b[16:], q.bytes)
	copy(b[24:], q.id[:])
	binary.LittleEndian.PutUint64(b[56:], xxhash.Sum64(b[:56]))
	return b
}

func decodeHeader(b [requestSize]byte) (q header, err error) {
	if binary.LittleEndian.Uint64(b[56:]) != xxhash.Sum64(b[:56]) {
		return q, fmt.Errorf("request %w: its checksum is wrong", meta.ErrCorrupt)
	}
	q = header{
		call:  b[2],
		count: binary.LittleEndian.Uint32(b[4:]),
		wait:  binary.LittleEndian.Uint32(b[8:]) &^ keptBit,
		kept:  binary.LittleEndian.Uint32(b[8:])&keptBit != 0,
		seq:   binary.LittleEndian.Uint32(b[12:]),
		bytes: binary.LittleEndian.Uint64(b[16:]),
		id:    [32]byte(b[24:56]),
	}
	if q.encode() != b || q.count > MaxRuns || q.bytes > maxBytes {
		return q, fmt.Errorf("request %w: nothing that can be asked for", meta.ErrInvalid)
	}
	return q, nil
}

func (q header) request(runs []Run) Request {
	return Request{Call: q.call, Kept: q.kept, Wait: time.Duration(q.wait) * time.Millisecond, Bytes: q.bytes, ID: q.id, Runs: runs}
}
