package record_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// rangesOf cuts maps into slices, and makes the parts of them, which are ranges of keys.
func rangesOf(t *testing.T, s record.Spec, parts, slices int, maps ...string) (all []string) {
	t.Helper()
	var divided []record.Divided
	var samples []record.Samples
	var sizes []int64
	for _, m := range maps {
		is := divide(t, s, m, slices)
		n := number(is.Offsets, slices)
		divided, samples, sizes = append(divided, is), append(samples, is.Bytes[n:number(is.Offsets, slices+1)]), append(sizes, int64(n))
	}
	bounds := boundsOf(t, s, samples, sizes, uint64(parts))
	for p := range parts {
		keys, _ := record.RangeOf(bounds, uint64(p))
		var runs []record.Run
		for i, is := range divided {
			var run record.Run
			span := s.Spans(samples[i], bounds, uint64(p), 1)[0]
			if all := s.Spans(samples[i], bounds, 0, uint64(parts)); all[p] != span {
				t.Errorf("of part %d a map has %v, and among those of all parts %v", p, span, all[p])
			}
			for slice := int(span.First); slice < int(span.End); slice++ {
				var at record.Range
				from, until := span.Cuts(uint16(slice))
				if from {
					at.From = keys.From
				}
				if until {
					at.To = keys.To
				}
				b, err := s.Cut(is.Bytes[number(is.Offsets, slice):number(is.Offsets, slice+1)], at)
				if err != nil {
					t.Fatal(err)
				}
				run.Buffers = append(run.Buffers, b)
			}
			runs = append(runs, run)
		}
		all = append(all, mergedOf(t, s, runs))
	}
	return all
}

// Parts that are ranges of keys are, one after the other, what a plain sort of all records
// makes; and no key is in two of them.
func TestRangesAreOneOrder(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		text := strings.ReplaceAll(randomSpec(r), "sort=none", "sort=key")
		t.Run(fmt.Sprintf("seed=%d %s", seed, text), func(t *testing.T) {
			s, parts := specOf(t, text+" by=range"), 1+r.IntN(5)
			var maps []string
			var all [][]string
			for range 1 + r.IntN(5) {
				m, records := randomMap(r, s)
				if s.Key.Field == 0 && s.Key.From == 0 && s.Kind == meta.Lines && r.IntN(2) == 0 { // keys that samples have no room for
					long := strings.Repeat("x", 60+r.IntN(8))
					m, records = long+"\n"+m, append([]string{long}, records...)
				}
				maps, all = append(maps, m), append(all, records)
			}
			got := rangesOf(t, s, parts, 1+r.IntN(12), maps...)
			if want := plain(s, 1, all)[0]; strings.Join(got, "") != want {
				t.Errorf("parts of %q are\n%q, want\n%q", maps, got, want)
			}
		})
	}
}

// A map in order is what one becomes that has the same records in another order, and its
// slices have the sums that are said of them.
func TestSlicesOfMapsInOrder(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 13))
		s := specOf(t, "record="+[]string{"line", "sizes"}[seed%2]+" by=range")
		var records []string
		for i := range r.IntN(40) {
			text := fmt.Sprintf("%03d%s", i, strings.Repeat("x", r.IntN([]int{100, 50_000}[seed%8/7])))
			if s.Kind == meta.Lines {
				text += "\n"
			} else {
				text = string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text
			}
			records = append(records, text)
		}
		slicesOf := func() record.Divided { return divide(t, s, strings.Join(records, ""), 16) }
		inOrder := slicesOf()
		if len(inOrder.Sums) != 16 {
			t.Fatalf("seed %d: there are sums of %d slices", seed, len(inOrder.Sums))
		}
		for i, sum := range inOrder.Sums {
			if sum != xxhash.Sum64(inOrder.Bytes[number(inOrder.Offsets, i):number(inOrder.Offsets, i+1)]) {
				t.Errorf("seed %d: slice %d has another sum", seed, i)
			}
		}
		r.Shuffle(len(records), func(i, k int) { records[i], records[k] = records[k], records[i] })
		if is := slicesOf(); !bytes.Equal(is.Bytes, inOrder.Bytes) || !bytes.Equal(is.Offsets, inOrder.Offsets) {
			t.Errorf("seed %d: %q at %x, and of maps in order %q at %x", seed, is.Bytes, is.Offsets, inOrder.Bytes, inOrder.Offsets)
		}
	}
}

// Parts that are ranges of many keys are about even, also where maps are of different sizes
// and have keys of different ranges.
func TestRangesAreEven(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var maps []string
	total := 0
	for i := range 6 {
		var b strings.Builder
		for range 2000 * (i + 1) {
			fmt.Fprintf(&b, "%08d\n", r.IntN(1e7)+i*3e6)
		}
		maps, total = append(maps, b.String()), total+b.Len()
	}
	const parts = 8
	for i, p := range rangesOf(t, specOf(t, "record=line by=range"), parts, 64, maps...) {
		if n := len(p); n < total/parts*8/10 || n > total/parts*12/10 {
			t.Errorf("part %d has %d of %d bytes, of which an eighth is %d", i, n, total, total/parts)
		}
	}
}

// Where parts begin follows from the samples alone, in whichever order they are sorted: of a
// key that many maps have, each sample stands for so many bytes as its map has.
func TestBoundsOfOneKey(t *testing.T) {
	s := specOf(t, "record=line by=range")
	var all []record.Samples
	var sizes []int64
	for _, m := range []string{"a\n", strings.Repeat("a\n", 100), "b\n"} {
		is := divide(t, s, m, 1)
		n := number(is.Offsets, 1)
		all, sizes = append(all, is.Bytes[n:]), append(sizes, int64(n))
	}
	want := boundsOf(t, s, all, sizes, 2)
	all[0], all[1], sizes[0], sizes[1] = all[1], all[0], sizes[1], sizes[0]
	if got := boundsOf(t, s, all, sizes, 2); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("parts begin at %q, and in another order of maps at %q", want, got)
	}
}

// Of more samples than are looked at those that are have all of a map's range.
func TestBoundsOfManyMaps(t *testing.T) {
	s := specOf(t, "record=line by=range")
	is := divide(t, s, "a\nb\nc\nd\n", 4)
	n := number(is.Offsets, 4)
	maps := slices.Repeat([]record.Samples{is.Bytes[n:]}, meta.MaxMaps)
	sizes := slices.Repeat([]int64{int64(n)}, meta.MaxMaps)
	if got := boundsOf(t, s, maps, sizes, 2); len(got) != 1 || string(got[0]) != "c" {
		t.Errorf("parts begin at %q, want the third of four keys", got)
	}
}

// All records of one key are in one part, however many they are.
func TestRangesOfOneKey(t *testing.T) {
	m := strings.Repeat("same\tx\n", 1000)
	got := rangesOf(t, specOf(t, "record=line key=1 by=range"), 4, 16, m, "a\t1\n"+m)
	whole := 0
	for _, p := range got {
		if n := strings.Count(p, "same"); n == 2000 {
			whole++
		} else if n > 0 {
			t.Errorf("a part has %d of 2000 records of one key", n)
		}
	}
	if whole != 1 {
		t.Errorf("%d parts have them", whole)
	}
}

// boundsOf are the keys with which parts begin, of maps with these samples.
func boundsOf(t *testing.T, s record.Spec, maps []record.Samples, sizes []int64, parts uint64) [][]byte {
	t.Helper()
	sampler, err := s.Sampler(len(maps), uint64(len(maps[0]))/uint64(record.SamplesBytes(1)), func(n int64) ([]byte, error) { return make([]byte, n), nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range maps {
		sampler.Add(i, m, sizes[i])
	}
	return sampler.Bounds(parts)
}
