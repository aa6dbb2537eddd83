package datanode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"

	"rankfs/meta"
)

// Before a block is asked for, both ends of a connection send a
// DataTransferEncryptorMessageProto each, in turns. hdfs/v2 can do so too, but
// demands the best protection of the first that a datanode names, and loses bytes
// where one of its reads spans two sealed messages.

const opensTalk = 0xdeadbeef

// Fields of the message, and of the CipherOptionProto in it.
const (
	fieldStatus, fieldPayload, fieldMessage, fieldCipher              = 1, 2, 3, 4
	fieldSuite, fieldInKey, fieldInIV, fieldOutKey, fieldOutIV        = 1, 2, 3, 4, 5
	statusSuccess, statusUnknownKey                            uint64 = 0, 1
	suiteAES                                                   uint64 = 2
)

// agree negotiates with a datanode, and returns a connection with the agreed protection.
func (g Guard) agree(c net.Conn, who proof) (net.Conn, error) {
	if _, err := c.Write(talk(binary.BigEndian.AppendUint32(nil, opensTalk), nil, false)); err != nil {
		return nil, err
	}
	challenge, err := hear(c)
	if err != nil {
		return nil, err
	}
	d, err := newDigest(who, g.Allowed, bytesOf(challenge, fieldPayload))
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(talk(nil, d.response(), d.private())); err != nil {
		return nil, err
	}
	answer, err := hear(c)
	if err != nil {
		return nil, err
	}
	if err := d.check(bytesOf(answer, fieldPayload)); err != nil {
		return nil, err
	}
	return d.guard(c, bytesOf(answer, fieldCipher))
}

// guard makes the connection one of the agreed quality. A datanode that can do
// AES has answered with keys.
func (d *digest) guard(c net.Conn, keys []byte) (net.Conn, error) {
	if d.quality == qualities["authentication"] {
		return c, nil
	}
	theirs, ours := d.seal("server-to-client"), d.seal("client-to-server")
	if !d.private() || keys == nil {
		return &sealed{Conn: c, theirs: theirs, ours: ours}, nil
	}
	if suite, _ := protowire.ConsumeVarint(field(keys, fieldSuite)); suite != suiteAES {
		return nil, fmt.Errorf("its cipher %w: it is number %d, and only AES was asked for", meta.ErrCorrupt, suite)
	}
	ourKey, err := theirs.in(bytesOf(keys, fieldInKey))
	if err != nil {
		return nil, err
	}
	theirKey, err := theirs.in(bytesOf(keys, fieldOutKey))
	if err != nil {
		return nil, err
	}
	return newCiphered(c, theirKey, bytesOf(keys, fieldOutIV), ourKey, bytesOf(keys, fieldInIV))
}

// talk appends a message, which may ask for AES.
func talk(b, payload []byte, wantsAES bool) []byte {
	m := protowire.AppendTag(nil, fieldStatus, protowire.VarintType)
	m = protowire.AppendVarint(m, statusSuccess)
	if payload != nil {
		m = protowire.AppendTag(m, fieldPayload, protowire.BytesType)
		m = protowire.AppendBytes(m, payload)
	}
	if wantsAES {
		option := protowire.AppendTag(nil, fieldSuite, protowire.VarintType)
		m = protowire.AppendTag(m, fieldCipher, protowire.BytesType)
		m = protowire.AppendBytes(m, protowire.AppendVarint(option, suiteAES))
	}
	return protowire.AppendBytes(b, m)
}

// maxTalk is far above a challenge, or keys.
const maxTalk = 16 << 10

// hear returns the datanode's next message, if it does not refuse.
func hear(c net.Conn) ([]byte, error) {
	m, err := readMessage(c, maxTalk)
	if err != nil {
		return nil, err
	}
	status, bad := protowire.ConsumeVarint(field(m, fieldStatus))
	switch {
	case bad < 0:
		return nil, fmt.Errorf("its answer %w: it has no status", meta.ErrCorrupt)
	case status == statusUnknownKey:
		return nil, fmt.Errorf("%w: it does not know the encryption key, of which the namenode has another by now", syscall.EACCES)
	case status != statusSuccess:
		return nil, fmt.Errorf("%w: it refuses the block's token: %s", syscall.EACCES, words(bytesOf(m, fieldMessage)))
	}
	return m, nil
}

// readMessage reads a message with its length before it.
func readMessage(c net.Conn, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(oneByOne{c})
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("its answer %w: %d bytes", meta.ErrCorrupt, n)
	}
	m := make([]byte, n)
	_, err = io.ReadFull(c, m)
	return m, err
}

// words makes a stranger's text fit to print.
func words(b []byte) string {
	const maxShown = 400
	text := strings.ToValidUTF8(string(b[:min(len(b), maxShown)]), "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func bytesOf(m []byte, f protowire.Number) []byte {
	b, n := protowire.ConsumeBytes(field(m, f))
	if n < 0 {
		return nil
	}
	return b
}

// oneByOne reads bytes from a connection that has a buffer.
type oneByOne struct{ io.Reader }

func (r oneByOne) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Reader, b[:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b[0], err
}

// field returns the value of a message's field, or nil.
func field(b []byte, want protowire.Number) []byte {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return nil
		}
		if num == want {
			return b[n : n+size]
		}
		b = b[n+size:]
	}
	return nil
}
