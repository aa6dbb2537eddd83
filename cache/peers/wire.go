package peers

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// The bounds of what is asked for and sent.
const (
	MaxRuns  = 1 << 20 // of one request: 16 MiB of them
	maxBytes = 1 << 40 // of one request, far above any batch
	maxFrame = 1 << 20 // data of one frame
	maxText  = 1 << 10 // of an error
)

const (
	requestSize = 64
	runSize     = 16
	sumSize     = 8
	headSize    = 16
)

// An ID is the SHA-256 of an index file, and so names the dataset it is of.
type ID [32]byte

// What a request can ask for.
const (
	askRecords uint8 = iota + 1
	askFile
)

// keptBit stands beside the time that a request may wait. To a node that does not
// know it, it is a very long time, and more than is asked for comes of it: the
// bytes, fetched.
const keptBit = 1 << 31

// A request begins an exchange.
type request struct {
	ask   uint8
	count uint32 // runs that follow
	wait  uint32 // milliseconds for which it may wait for its turn
	kept  bool   // wants no more than what is at hand
	seq   uint32 // which request of its connection it is
	bytes uint64 // what the records come to; zero for a file
	id    ID
}

func (q request) encode() (b [requestSize]byte) {
	b[0], b[1], b[2] = 'r', 'k', q.ask
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

func decodeRequest(b [requestSize]byte) (q request, err error) {
	if binary.LittleEndian.Uint64(b[56:]) != xxhash.Sum64(b[:56]) {
		return q, fmt.Errorf("request %w: its checksum is wrong", meta.ErrCorrupt)
	}
	q = request{
		ask:   b[2],
		count: binary.LittleEndian.Uint32(b[4:]),
		wait:  binary.LittleEndian.Uint32(b[8:]) &^ keptBit,
		kept:  binary.LittleEndian.Uint32(b[8:])&keptBit != 0,
		seq:   binary.LittleEndian.Uint32(b[12:]),
		bytes: binary.LittleEndian.Uint64(b[16:]),
		id:    ID(b[24:56]),
	}
	if q.encode() != b || q.check() != nil {
		return q, fmt.Errorf("request %w: nothing that can be asked for", meta.ErrInvalid)
	}
	return q, nil
}

func (q request) check() error {
	switch {
	case q.ask == askFile && q.count == 0 && q.bytes == 0:
		return nil
	case q.ask == askRecords && q.count > 0 && q.count <= MaxRuns && q.bytes <= maxBytes:
		return nil
	}
	return fmt.Errorf("request for %d bytes in %d runs %w: ask for 1 to %d runs", q.bytes, q.count, meta.ErrInvalid, MaxRuns)
}

// The kinds of frames.
const (
	kindData uint8 = iota + 1
	kindSize       // of the file that follows: 8 bytes
	kindWait       // nothing yet
	kindFail       // why there will be no more: the kind of error and its words
	kindEnd
)

// A head announces a frame.
type head struct {
	length uint32
	kind   uint8
}

// encode writes h with the sum of the stream up to here, and enters it in sum.
func (h head) encode(b []byte, sum *xxhash.Digest) {
	binary.LittleEndian.PutUint32(b, h.length)
	b[4], b[5], b[6], b[7] = h.kind, 0, 0, 0
	_, _ = sum.Write(b[:8])
	binary.LittleEndian.PutUint64(b[8:headSize], sum.Sum64())
}

// decodeHead checks b against the sum of the stream, and that the frame which
// it announces is one that can be.
func decodeHead(b []byte, sum *xxhash.Digest) (h head, err error) {
	_, _ = sum.Write(b[:8])
	if binary.LittleEndian.Uint64(b[8:headSize]) != sum.Sum64() {
		return h, fmt.Errorf("answer %w: its checksum is wrong", meta.ErrCorrupt)
	}
	h = head{length: binary.LittleEndian.Uint32(b), kind: b[4]}
	if !h.possible() || b[5] != 0 || b[6] != 0 || b[7] != 0 {
		return h, fmt.Errorf("answer %w: a frame of kind %d with %d bytes", meta.ErrCorrupt, h.kind, h.length)
	}
	return h, nil
}

func (h head) possible() bool {
	switch h.kind {
	case kindData:
		return h.length > 0 && h.length <= maxFrame
	case kindSize:
		return h.length == 8
	case kindFail:
		return h.length <= maxText
	case kindWait, kindEnd:
		return h.length == 0
	}
	return false
}

// greet begins the sum of an exchange: an answer is to this request alone.
func greet(sum *xxhash.Digest, head, runsSum []byte) {
	sum.Reset()
	_, _ = sum.Write(head)
	_, _ = sum.Write(runsSum)
}
