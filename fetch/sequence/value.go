package sequence

import (
	"bufio"
	"errors"
)

// A value is one value as it was serialised.
type value struct {
	body *bufio.Reader // nil if only its size is known
	off  int64         // in the file, or -1
	size int64         // or -1: all that body has
}

// A layout says what precedes the payload of a value.
type layout int

const (
	bare     layout = iota // nothing
	counted                // its length in four bytes
	vcounted               // its length as a vint
)

func (h Header) layout() layout {
	switch h.Value {
	case "org.apache.hadoop.io.BytesWritable":
		return counted
	case "org.apache.hadoop.io.Text":
		return vcounted
	}
	return bare
}

// payload is the number of bytes of payload in a value of size bytes; -1 if no value has
// that size.
func (l layout) payload(size int64) int64 {
	switch l {
	case counted:
		return max(-1, size-4)
	case vcounted:
		for prefix := int64(1); prefix <= min(5, size); prefix++ {
			if vintBytes(size-prefix) == prefix {
				return size - prefix
			}
		}
		return -1
	}
	return size
}

// read reads the prefix of a value, and returns the length of the payload.
func (l layout) read(r *bufio.Reader) (int64, error) {
	if l == counted {
		b, err := r.Peek(4)
		if err != nil {
			return 0, unexpected(err)
		}
		n := bigInt32(b)
		r.Discard(4) // it was peeked at
		return n, nil
	}
	n, used, err := readVint(r)
	if err == nil && n >= 0 && used != vintBytes(n) {
		err = errors.New("a length in more bytes than it takes")
	}
	return n, unexpected(err)
}
