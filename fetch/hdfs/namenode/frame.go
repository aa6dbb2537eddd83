package namenode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rankfs/meta"
)

// A frame is a length in four bytes, big end first, and messages, each behind
// its length as a varint.

// maxFrame is the default of Hadoop's ipc.maximum.data.length and
// ipc.maximum.response.length.
const maxFrame = 128 << 20

// frame packs messages for the wire.
func frame(messages ...proto.Message) ([]byte, error) {
	b := make([]byte, 4, 256)
	for _, m := range messages {
		b = protowire.AppendVarint(b, uint64(proto.Size(m)))
		var err error
		if b, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(b, m); err != nil {
			return nil, err
		}
	}
	if len(b)-4 > maxFrame {
		return nil, fmt.Errorf("request of %d bytes %w: at most %d can be sent", len(b)-4, meta.ErrInvalid, maxFrame)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b, nil
}

// readFrame reads a frame of up to most bytes and returns the bytes after its length
// field. Memory is allocated as bytes come in, not by the stated length. At the end
// of the stream it returns io.EOF.
func readFrame(r io.Reader, most int64) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if string(head[:]) == "HTTP" {
		return nil, fmt.Errorf("reply %w: it is HTTP; give the namenode's RPC port, 8020 by default", meta.ErrCorrupt)
	}
	if n > most {
		return nil, fmt.Errorf("reply %w: %d bytes announced, at most %d are allowed; is this a namenode's RPC port?", meta.ErrCorrupt, n, most)
	}
	var b bytes.Buffer
	b.Grow(int(min(n, 64<<10)))
	if got, err := io.CopyN(&b, r, n); err != nil {
		return nil, fmt.Errorf("reply of %d bytes ends after %d: %w", n, got, io.ErrUnexpectedEOF)
	}
	return b.Bytes(), nil
}

// shift takes the first message off a frame.
func shift(b []byte, m proto.Message) (rest []byte, err error) {
	body, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, fmt.Errorf("reply %w: %v", meta.ErrCorrupt, protowire.ParseError(n))
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("reply %w: %v", meta.ErrCorrupt, err)
	}
	return b[n:], nil
}
