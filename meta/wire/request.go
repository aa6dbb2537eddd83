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
	MaxRuns  = 1 << 20  // 16 MiB of them
	MaxBody  = 64 << 10 // a few paths
	maxBytes = 1 << 40  // far above any batch
)

const requestSize = 64

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
	Quiet time.Duration // how long its turn, the connection and each word of the node may take, if that is less than Config says
	Bytes uint64        // what the data comes to, if that is known before
	ID    [32]byte      // what it is about
	Runs  []Run         // and which of it
	Body  []byte        // or instead of runs: what it is about, in a form of the call's own
}

// quiet is how long what may take so much time may take for this request.
func (q Request) quiet(most time.Duration) time.Duration {
	if q.Quiet > 0 {
		return min(q.Quiet, most)
	}
	return most
}

func (q Request) header(seq uint32) (header, error) {
	h := header{
		call: q.Call, count: uint32(len(q.Runs)), wait: uint32(min(max(q.Wait, 0), time.Hour).Milliseconds()),
		kept: q.Kept, seq: seq, bytes: q.Bytes, id: q.ID,
	}
	switch {
	case len(q.Runs) > MaxRuns || q.Bytes > maxBytes:
		return header{}, fmt.Errorf("request for %d bytes in %d runs %w: ask for %d runs at most", q.Bytes, len(q.Runs), meta.ErrInvalid, MaxRuns)
	case len(q.Body) > MaxBody || len(q.Body) > 0 && len(q.Runs) > 0:
		return header{}, fmt.Errorf("request with %d bytes beside %d runs %w: there are %d bytes at most, and no runs", len(q.Body), len(q.Runs), meta.ErrInvalid, MaxBody)
	case len(q.Body) > 0:
		h.count, h.body = uint32(len(q.Body)), true
	}
	return h, checkRuns(q.Runs)
}

// A header is a request without its runs, as it is sent.
type header struct {
	call  uint8
	body  bool   // bytes follow, and no runs
	count uint32 // of them
	wait  uint32 // milliseconds
	kept  bool
	seq   uint32 // which request of its connection it is
	bytes uint64
	id    [32]byte
}

func (q header) encode() (b [requestSize]byte) {
	b[0], b[1], b[2] = 'r', 'k', q.call
	if q.body {
		b[3] = 1
	}
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
		body:  b[3] == 1,
		count: binary.LittleEndian.Uint32(b[4:]),
		wait:  binary.LittleEndian.Uint32(b[8:]) &^ keptBit,
		kept:  binary.LittleEndian.Uint32(b[8:])&keptBit != 0,
		seq:   binary.LittleEndian.Uint32(b[12:]),
		bytes: binary.LittleEndian.Uint64(b[16:]),
		id:    [32]byte(b[24:56]),
	}
	if q.encode() != b || q.count > MaxRuns || q.body && (q.count > MaxBody || q.count == 0) || q.bytes > maxBytes {
		return q, fmt.Errorf("request %w: nothing that can be asked for", meta.ErrInvalid)
	}
	return q, nil
}

// follows is the number of bytes after the header, without their sum.
func (q header) follows() int {
	if q.body {
		return int(q.count)
	}
	return int(q.count) * runSize
}

func (q header) request(runs []Run, body []byte) Request {
	return Request{Call: q.call, Kept: q.kept, Wait: time.Duration(q.wait) * time.Millisecond, Bytes: q.bytes, ID: q.id, Runs: runs, Body: body}
}

// An exchange is one request and its answer, and what is pushed between them.
type exchange struct {
	request Request
	feed    Feed // nil for a pull
	to      Sink
	heard   bool // something of the answer came
}
