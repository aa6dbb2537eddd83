package wire

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// sendBody writes the body of a request and its sum behind what is in b, and returns the
// sum.
func sendBody(w io.Writer, b, body []byte) (sum []byte, err error) {
	b = append(b, body...)
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(body))
	_, err = w.Write(b)
	return b[len(b)-sumSize:], err
}

// readBody reads a body of n bytes and its sum.
func readBody(r io.Reader, n int) (body, sum []byte, err error) {
	b := make([]byte, n+sumSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, nil, noEOF(err)
	}
	body, sum = b[:n], b[n:]
	if binary.LittleEndian.Uint64(sum) != xxhash.Sum64(body) {
		return nil, nil, fmt.Errorf("body of a request %w: its checksum is wrong", meta.ErrCorrupt)
	}
	return body, sum, nil
}
