package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"rankfs/fetch/index"
	"rankfs/meta"
)

func readSingly(t *testing.T, f Fixture) {
	d := Attach(t, f)
	if d.Records() != uint64(len(f.Records)) {
		t.Fatalf("%d records, want %d", d.Records(), len(f.Records))
	}
	var total int64
	for i, record := range f.Records {
		if size := d.Size(uint64(i)); size != int64(len(record)) {
			t.Fatalf("record %d has %d bytes, want %d", i, size, len(record))
		}
		want(t, d, f, uint64(i), 1)
		total += int64(len(record))
	}
	if d.Bytes() != total {
		t.Errorf("%d bytes, want %d", d.Bytes(), total)
	}
}

func readRanges(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	for i := range d.Chunks() {
		c := d.Chunk(i)
		want(t, d, f, c.First, c.Records)
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		first := r.Uint64N(n + 1)
		want(t, d, f, first, few(f, first, r))
	}
}

// few is a number of records from first on that come to a megabyte or so.
func few(f Fixture, first uint64, r *rand.Rand) uint64 {
	n, size := uint64(0), 0
	for limit := r.Uint64N(1000); n < limit && first+n < uint64(len(f.Records)) && size < 1<<20; n++ {
		size += len(f.Records[first+n])
	}
	return n
}

func readShuffled(t *testing.T, f Fixture) {
	d := Attach(t, f)
	r := rand.New(rand.NewPCG(2, 0))
	for range 20 {
		order := r.Perm(len(f.Records))
		order = order[:min(len(order), 500)]
		var extents []index.Extent
		var wanted []byte
		for _, i := range order {
			extents = append(extents, d.Extent(uint64(i)))
			wanted = append(wanted, f.Records[i]...)
			if len(wanted) > 1<<20 {
				break
			}
		}
		dst := make([]byte, len(wanted))
		if err := d.Read(t.Context(), extents, dst); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, wanted) {
			t.Fatalf("records in the order %v have other bytes", order)
		}
	}
}

func readConcurrently(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	var readers sync.WaitGroup
	for seed := range uint64(8) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 50 {
				first := r.Uint64N(n + 1)
				want(t, d, f, first, few(f, first, r))
				if err := d.Check(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
}

func lengths(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	extents := d.Extents(0, min(n, 10))
	var size int64
	for _, e := range extents {
		size += e.Len
	}
	tests := []struct {
		name    string
		extents []index.Extent
		size    int64
	}{
		{"longer", extents, size + 1},
		{"shorter", extents, size - 1},
		{"no such file", []index.Extent{{File: 1 << 31, Len: 1}}, 1},
		{"past the end", []index.Extent{{Off: 1 << 47, Len: 1}}, 1},
		{"negative offset", []index.Extent{{Off: -1, Len: 1}}, 1},
		{"negative length", []index.Extent{{Off: 1, Len: -1}}, 0},
		{"overflow", []index.Extent{{Off: 1, Len: 1<<63 - 1}}, 0},
	}
	for _, test := range tests {
		if test.size < 0 {
			continue
		}
		if err := d.Read(t.Context(), test.extents, make([]byte, test.size)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", test.name, err)
		}
	}
	if err := d.Read(t.Context(), nil, nil); err != nil {
		t.Errorf("reading nothing: %v", err)
	}
}

func cancelled(t *testing.T, f Fixture) {
	d := Attach(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Read":  d.Read(ctx, nil, nil),
		"Check": d.Check(ctx),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
}
