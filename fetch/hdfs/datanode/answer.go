package datanode

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// An answer is a connection on which a block was asked for. The datanode says
// how it will send the block, and then sends packets: a length, a header,
// checksums, bytes. The library, which reads from an answer, believes the datanode: that
// there are no checksums, how much room they take, and which bytes of the block
// come. So an answer checks these first, and passes only a sound reply on.
type answer struct {
	net.Conn
	begun  bool
	at     int64         // in the block, where the next packet begins; at first, where the request does
	per    int64         // bytes that share a checksum; 0 if the datanode refused
	packet proto.Message // the header of one
	head   []byte
	rest   []byte // of head, for the library
	left   int64  // bytes of the packet that are still to come
}

const (
	// minPer and maxPer bound the bytes that share a checksum, 512 by default: with
	// fewer the checksums need as much room as the bytes, with more a byte costs too
	// much to check.
	minPer, maxPer = 64, 1 << 20
	// maxPacket is that of Hadoop's own clients. Datanodes send 64 KiB.
	maxPacket = 16 << 20
	sumBytes  = 4
)

// maxReply bounds what a datanode may answer before the data: a token and some
// words.
const maxReply = 64 << 10

// errSums is the error of a replica that cannot be checked. Its datanode sends
// it all the same, without a word.
var errSums = fmt.Errorf("its set of checksums %w", meta.ErrCorrupt)

func newAnswer(c net.Conn, at int64) *answer {
	return &answer{Conn: c, at: at, packet: message.New("hdfs.PacketHeaderProto", nil)}
}

func (a *answer) Read(p []byte) (n int, err error) {
	if len(a.rest) == 0 && a.left == 0 {
		if err := a.look(); err != nil {
			return 0, err
		}
	}
	if len(a.rest) > 0 {
		n = copy(p, a.rest)
		a.rest = a.rest[n:]
		return n, nil
	}
	n, err = a.Conn.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, err
}

// look reads and checks the reply, or the packet header, that precedes bytes of the
// block.
func (a *answer) look() (err error) {
	if a.begun {
		err = a.next()
	} else {
		err = a.begin()
	}
	a.rest = a.head
	return err
}

// begin reads how the block will be sent.
func (a *answer) begin() error {
	m, err := readMessage(a.Conn, maxReply)
	if err != nil {
		return err
	}
	a.begun, a.head = true, protowire.AppendBytes(a.head[:0], m)
	reply := message.New("hdfs.BlockOpResponseProto", nil)
	if err := proto.Unmarshal(m, reply); err != nil {
		return fmt.Errorf("its answer %w: %w", meta.ErrCorrupt, err)
	}
	const success = 0
	if message.Get(reply, "status").Enum() != success {
		return nil // the library reports the refusal
	}
	info := message.Get(reply, "readOpChecksumInfo").Message().Interface()
	return a.agreeTo(message.Get(info, "checksum").Message().Interface(), int64(message.Get(info, "chunkOffset").Uint()))
}

// agreeTo checks the kind of the checksums, and where in the block the first is.
func (a *answer) agreeTo(sum proto.Message, from int64) error {
	const none = 0 // CHECKSUM_NULL
	if message.Get(sum, "type").Enum() == none {
		return fmt.Errorf("%w: there are none. They were lost on its disk, or never made, which is so with dfs.checksum.type NULL "+
			"and in memory (RAM_DISK); if no replica has any, write the file anew", errSums)
	}
	a.per = int64(message.Get(sum, "bytesPerChecksum").Uint())
	if a.per < minPer || a.per > maxPer {
		return fmt.Errorf("%w: there is one for every %d bytes, and rankfs reads those for %d to %d", errSums, a.per, minPer, maxPer)
	}
	if from > a.at || from <= a.at-a.per {
		return fmt.Errorf("its answer %w: it begins at %d of the block for what is at %d", meta.ErrCorrupt, from, a.at)
	}
	a.at = from
	return nil
}

// next reads the length and the header of a packet.
func (a *answer) next() error {
	if a.per == 0 {
		return io.ErrUnexpectedEOF
	}
	const lengths = 4 + 2
	a.head = append(a.head[:0], make([]byte, lengths)...)
	if _, err := io.ReadFull(a.Conn, a.head); err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(a.head)) - 4 // which it counts in
	a.head = append(a.head, make([]byte, binary.BigEndian.Uint16(a.head[4:]))...)
	if _, err := io.ReadFull(a.Conn, a.head[lengths:]); err != nil {
		return err
	}
	if err := proto.Unmarshal(a.head[lengths:], a.packet); err != nil {
		return fmt.Errorf("its packet %w: %w", meta.ErrCorrupt, err)
	}
	n := message.Get(a.packet, "dataLen").Int()
	if n < 0 || n > maxPacket || size != n+(n+a.per-1)/a.per*sumBytes {
		return fmt.Errorf("its packet %w: %d bytes of the block in %d", meta.ErrCorrupt, n, size)
	}
	if at := message.Get(a.packet, "offsetInBlock").Int(); at != a.at {
		return fmt.Errorf("its packet %w: it begins at %d of the block, not at %d", meta.ErrCorrupt, at, a.at)
	}
	a.at, a.left = a.at+n, size
	return nil
}
