package disks

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func labels() []label {
	return []label{
		{},
		{key: Key{Plan: [16]byte{1, 2, 255}, Rank: 3, Step: 17}, size: 1 << 20, sum: 0xdeadbeef},
		{key: Key{Rank: math.MaxUint64, Step: math.MaxUint64}, size: math.MaxInt64, sum: math.MaxUint64},
	}
}

// A name that is taken for a slab's is exactly what a slab would be called.
func FuzzParseName(f *testing.F) {
	for _, l := range labels() {
		f.Add(l.name())
		f.Add(l.name() + " ")
	}
	f.Add("0-0-0-0-0.slab")
	f.Fuzz(func(t *testing.T, name string) {
		if l, ok := parseName(name); ok && l.name() != name {
			t.Errorf("%q means %q", name, l.name())
		}
	})
}

func TestNames(t *testing.T) {
	for _, l := range labels() {
		if got, ok := parseName(l.name()); !ok || got != l {
			t.Errorf("%+v became %+v", l, got)
		}
	}
}

// An index that is accepted is one that could have been written. The sum is
// put right, or nothing else would ever be tried.
func FuzzDecodeIndex(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(encodeIndex(slices.Values[[]item](nil), 0))
	f.Add(encodeIndex(slices.Values([]item{{labels()[1], 1 << 20}, {labels()[0], 0}}), 2))
	f.Add(encodeIndex(slices.Values([]item{{labels()[2], math.MaxInt64}}), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 8 {
			body := b[:len(b)-8]
			b = binary.LittleEndian.AppendUint64(slices.Clone(body), xxhash.Sum64(body))
		}
		items, err := decodeIndex(b)
		if err == nil && !bytes.Equal(encodeIndex(slices.Values(items), len(items)), b) {
			t.Errorf("%d items are not what they were", len(items))
		}
		for _, i := range items {
			if i.size < 0 || i.real < 0 || i.real > 2<<50 {
				t.Errorf("%+v", i)
			}
		}
	})
}
