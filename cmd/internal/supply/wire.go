package supply

import (
	"encoding/binary"
	"math"
)

const (
	requestBytes      = 8
	notificationBytes = 56

	// closing as a sequence number ends the pair.
	closing = math.MaxUint64
)

// A status says what became of a request.
type status uint32

const (
	ok     status = 0
	ended  status = 1 // the number after that of the rank's last batch
	failed status = 2 // see the server's log
)

// A notification tells a client where its batch lies in the mapped file.
type notification struct {
	sequence uint64
	offset   uint64
	total    uint64
	sizes    [7]uint32
	status   status
}

// delivered announces a raw batch, which is all data: of the seven values of
// an element only the last has a size, cut to what 32 bits can say.
func delivered(sequence uint64, total int64) notification {
	n := notification{sequence: sequence, total: uint64(total)}
	n.sizes[6] = uint32(min(total, math.MaxUint32))
	return n
}

func (n notification) encode() []byte {
	b := make([]byte, 0, notificationBytes)
	b = binary.LittleEndian.AppendUint64(b, n.sequence)
	b = binary.LittleEndian.AppendUint64(b, n.offset)
	b = binary.LittleEndian.AppendUint64(b, n.total)
	for _, size := range n.sizes {
		b = binary.LittleEndian.AppendUint32(b, size)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(n.status))
}
