package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is the bytes of a message in protocol buffers.
type message []byte

func (m message) number(field protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), value)
}

func (m message) bytes(field protowire.Number, value []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), value)
}

// header is that of a call, or of the context of a connection. A daemon knows by it what
// it did already, and does not again: each connection is another client's.
func header(id int64, client []byte) message {
	return message(nil).number(1, 2).number(2, 0).number(3, protowire.EncodeZigZag(id)).bytes(4, client)
}

// packet is messages, each behind its length, behind the length of all.
func packet(messages ...message) []byte {
	b := make([]byte, 4)
	for _, m := range messages {
		b = protowire.AppendBytes(b, m)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

const maxAnswer = 1 << 20

// call has the other end of a new connection do a method for root, and waits until it
// has.
func call(ctx context.Context, conn net.Conn, client []byte, protocol, method string, request message) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const contextID = -3
	root := message(nil).bytes(1, []byte("root"))
	begin := packet(header(contextID, client), message(nil).bytes(2, root).bytes(3, []byte(protocol)))
	what := message(nil).bytes(1, []byte(method)).bytes(2, []byte(protocol)).number(3, 1)
	if _, err := conn.Write(slices.Concat([]byte("hrpc\x09\x00\x00"), begin, packet(header(0, client), what, request))); err != nil {
		return err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxAnswer {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	return outcome(answer)
}

// outcome is what an answer says of the call.
func outcome(answer []byte) error {
	head, n := protowire.ConsumeBytes(answer)
	if n < 0 {
		return protowire.ParseError(n)
	}
	const status, exception, words = 2, 4, 5 // fields
	var is uint64
	said := make(map[protowire.Number]string)
	for len(head) > 0 {
		field, kind, n := protowire.ConsumeTag(head)
		if n < 0 {
			return protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(field, kind, head[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		switch value := head[n : n+m]; kind {
		case protowire.VarintType:
			if field == status {
				is, _ = protowire.ConsumeVarint(value)
			}
		case protowire.BytesType:
			text, _ := protowire.ConsumeString(value)
			said[field] = text
		}
		head = head[n+m:]
	}
	if is != 0 {
		return fmt.Errorf("%s: %s", said[exception], said[words])
	}
	return nil
}
