package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

const (
	headSize = 16
	maxFrame = 1 << 20 // data of one frame
	maxText  = 1 << 10 // of an error
)

// The kinds of frames.
const (
	kindData uint8 = iota + 1
	kindSize       // of the file that follows: 8 bytes
	kindWait       // nothing yet
	kindFail       // why there will be no more: the kind of error and its words
	kindEnd
	kindCredit // how many bytes more the other side may send: 8 bytes
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
		return h, fmt.Errorf("frame %w: its checksum is wrong", meta.ErrCorrupt)
	}
	h = head{length: binary.LittleEndian.Uint32(b), kind: b[4]}
	if !h.possible() || b[5] != 0 || b[6] != 0 || b[7] != 0 {
		return h, fmt.Errorf("frame %w: of kind %d with %d bytes", meta.ErrCorrupt, h.kind, h.length)
	}
	return h, nil
}

func (h head) possible() bool {
	switch h.kind {
	case kindData:
		return h.length > 0 && h.length <= maxFrame
	case kindSize, kindCredit:
		return h.length == 8
	case kindFail:
		return h.length <= maxText
	case kindWait, kindEnd:
		return h.length == 0
	}
	return false
}

// greet begins the sum of an exchange, in either direction: what is sent belongs to
// this request alone.
func greet(sum *xxhash.Digest, head, rest []byte) {
	sum.Reset()
	_, _ = sum.Write(head)
	_, _ = sum.Write(rest)
}
