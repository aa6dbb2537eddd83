package datanode

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"rankfs/meta"
)

// A seal guards the messages of one direction: each has a sum, over its number too,
// that only the two ends can make, and may be encrypted.
type seal struct {
	key    []byte
	cipher *rc4.Cipher // nil if messages are only signed
	number uint32
}

const (
	sumSize  = 10
	sealSize = sumSize + 2 + 4 // with the kind of message, always 1, and the number
)

func (d *digest) seal(direction string) *seal {
	sign, encrypt := d.keys(direction)
	s := &seal{key: sign}
	if d.private() {
		s.cipher, _ = rc4.NewCipher(encrypt) // of 16 bytes, which is right
	}
	return s
}

func (s *seal) sum(message []byte) []byte {
	h := hmac.New(md5.New, s.key)
	h.Write(binary.BigEndian.AppendUint32(nil, s.number))
	h.Write(message)
	return h.Sum(nil)[:sumSize]
}

// out appends a sealed message to b.
func (s *seal) out(b, message []byte) []byte {
	from := len(b)
	b = append(append(b, message...), s.sum(message)...)
	if s.cipher != nil {
		s.cipher.XORKeyStream(b[from:], b[from:])
	}
	b = binary.BigEndian.AppendUint32(append(b, 0, 1), s.number)
	s.number++
	return b
}

// in returns the message of a sealed one, in its place.
func (s *seal) in(b []byte) ([]byte, error) {
	n := len(b) - sealSize
	if n < 0 {
		return nil, fmt.Errorf("its message %w: it has %d bytes", meta.ErrCorrupt, len(b))
	}
	if s.cipher != nil {
		s.cipher.XORKeyStream(b[:n+sumSize], b[:n+sumSize])
	}
	tail := b[n+sumSize:]
	if !hmac.Equal(b[n:n+sumSize], s.sum(b[:n])) || binary.BigEndian.Uint16(tail) != 1 || binary.BigEndian.Uint32(tail[2:]) != s.number {
		return nil, fmt.Errorf("its message %w: the signature is wrong", meta.ErrCorrupt)
	}
	s.number++
	return b[:n], nil
}

// A sealed connection carries sealed messages, with their lengths before them.
type sealed struct {
	net.Conn
	theirs, ours *seal
	frame        []byte // the last message
	rest         []byte // of it
}

// maxMessage is twice the largest message that both ends send by default.
const maxMessage = 128 << 10

func (c *sealed) Read(p []byte) (int, error) {
	for len(c.rest) == 0 && len(p) > 0 {
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *sealed) receive() (err error) {
	var head [4]byte
	if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("its message %w: it has %d bytes", meta.ErrCorrupt, n)
	}
	if int(n) > cap(c.frame) {
		c.frame = make([]byte, n)
	}
	if _, err = io.ReadFull(c.Conn, c.frame[:n]); err == nil {
		c.rest, err = c.theirs.in(c.frame[:n])
	}
	return err
}

func (c *sealed) Write(p []byte) (int, error) {
	b := c.ours.out(make([]byte, 4, 4+len(p)+sealSize), p)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := c.Conn.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A ciphered connection is encrypted by AES and not signed: blocks have their
// own checksums.
type ciphered struct {
	net.Conn
	in  cipher.StreamReader
	out cipher.StreamWriter
}

func newCiphered(c net.Conn, theirKey, theirVector, ourKey, ourVector []byte) (net.Conn, error) {
	theirs, err := counter(theirKey, theirVector)
	if err != nil {
		return nil, err
	}
	ours, err := counter(ourKey, ourVector)
	if err != nil {
		return nil, err
	}
	return &ciphered{c, cipher.StreamReader{S: theirs, R: c}, cipher.StreamWriter{S: ours, W: c}}, nil
}

func counter(key, vector []byte) (cipher.Stream, error) {
	block, err := aes.NewCipher(key)
	if err != nil || len(vector) != aes.BlockSize {
		return nil, fmt.Errorf("its key %w: %d bytes, with a vector of %d", meta.ErrCorrupt, len(key), len(vector))
	}
	return cipher.NewCTR(block, vector), nil
}

func (c *ciphered) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *ciphered) Write(p []byte) (int, error) { return c.out.Write(p) }
