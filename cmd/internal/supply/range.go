package supply

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sort"

	"golang.org/x/sys/unix"
)

// errEnded: the rank has had its last batch.
var errEnded = errors.New("end of data")

// missing tells the end of a rank's data, which is the number after its last
// batch, from numbers beyond, and from a rank, or a mount, that is not there.
func (p *pair) missing(sequence uint64, err error) error {
	if st, statErr := os.Stat(p.directory); !errors.Is(err, unix.ENOENT) || statErr != nil || !st.IsDir() {
		return fmt.Errorf("open %s: %w", p.batch(sequence), err)
	}
	if sequence == 0 || p.has(sequence-1) {
		return errEnded
	}
	return errBeyond(sequence, p.count(sequence))
}

// count is the number of the rank's batches, of which there are fewer than
// some bound.
func (p *pair) count(bound uint64) uint64 {
	most := min(bound, 1<<62) // what sort can count
	return uint64(sort.Search(int(most), func(k int) bool { return !p.has(uint64(k)) }))
}

// errBeyond says what came instead of a batch's number, since it was most
// likely meant to be something else.
func errBeyond(sequence, batches uint64) error {
	var came [requestBytes]byte
	binary.LittleEndian.PutUint64(came[:], sequence)
	meant := ""
	if other := bits.ReverseBytes64(sequence); other <= batches {
		meant = fmt.Sprintf("; in big-endian order it would be %d: send numbers in little-endian order", other)
	} else {
		meant = asText(bytes.TrimRight(came[:], "\x00"))
	}
	return fmt.Errorf("request % x is number %d, and the rank has %d batches, from 0%s", came, sequence, batches, meant)
}

// asText says what bytes are that came instead of a number, if they are text.
func asText(came []byte) string {
	if !printable(came) {
		return ""
	}
	return fmt.Sprintf("; as text it would be %q: send the number of a batch in 8 bytes", came)
}

// printable reports whether bytes are text, of which line ends may be a part.
func printable(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return len(b) > 0
}
