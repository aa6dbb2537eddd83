package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Run is N items of what a request is about, from First on: records of a
// dataset, say.
type Run struct{ First, N uint64 }

const (
	runSize = 16
	sumSize = 8 // of what follows a request
)

// checkRuns reports whether neither a run nor all together count further than
// items can.
func checkRuns(runs []Run) error {
	total := uint64(0)
	for i, r := range runs {
		if r.N == 0 || r.First > math.MaxUint64-r.N || total > math.MaxUint64-r.N {
			return fmt.Errorf("run %d, of %d items from %d on, %w", i, r.N, r.First, meta.ErrInvalid)
		}
		total += r.N
	}
	return nil
}

// total is the number of items in runs that were checked.
func total(runs []Run) (n uint64) {
	for _, r := range runs {
		n += r.N
	}
	return n
}

// sendRuns writes runs and their sum behind what is in b, using no more than
// b's capacity, and returns the sum.
func sendRuns(w io.Writer, b []byte, runs []Run) (sum []byte, err error) {
	body, from := xxhash.New(), len(b)
	for _, r := range runs {
		b = binary.LittleEndian.AppendUint64(b, r.First)
		b = binary.LittleEndian.AppendUint64(b, r.N)
		if cap(b)-len(b) < runSize {
			_, _ = body.Write(b[from:])
			if _, err := w.Write(b); err != nil {
				return nil, err
			}
			b, from = b[:0], 0
		}
	}
	_, _ = body.Write(b[from:])
	b = binary.LittleEndian.AppendUint64(b, body.Sum64())
	_, err = w.Write(b)
	return b[len(b)-sumSize:], err
}

// readRuns reads count runs and their sum, and appends what it can to runs
// without making room.
func readRuns(r io.Reader, count int, runs []Run) ([]Run, []byte, error) {
	body := xxhash.New()
	b := make([]byte, min(count*runSize, 32<<10))
	for left := count * runSize; left > 0; left -= len(b) {
		b = b[:min(len(b), left)]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, nil, noEOF(err)
		}
		_, _ = body.Write(b)
		for at := 0; at < len(b) && len(runs) < cap(runs); at += runSize {
			runs = append(runs, Run{binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])})
		}
	}
	sum := make([]byte, sumSize)
	if _, err := io.ReadFull(r, sum); err != nil {
		return nil, nil, noEOF(err)
	}
	if binary.LittleEndian.Uint64(sum) != body.Sum64() {
		return nil, nil, fmt.Errorf("list of runs %w: its checksum is wrong", meta.ErrCorrupt)
	}
	return runs, sum, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
