package sequence_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every way to cut a small file in three gives each value once.
func TestEveryCut(t *testing.T) {
	for _, f := range []format{
		{5, "none", "", bytesWritable, 40, 3},
		{4, "record", "DefaultCodec", text, 60, 0},
		{5, "block", "Lz4Codec", other, 60, 1},
	} {
		w := write(t, f, someValues(6, 16))
		h := header(t, w.data)
		size := int64(len(w.data))
		for a := int64(0); a <= size+1; a++ {
			checkSplit(t, h, w, 0, a)
			checkSplit(t, h, w, a, size)
			for b := a; b <= size+1; b++ {
				checkSplit(t, h, w, a, b)
			}
			once(t, w, []int64{0, a, size})
		}
	}
}

// once checks that the splits between cuts have each value once. What a split
// has is checkSplit's to say.
func once(t *testing.T, w *file, cuts []int64) {
	t.Helper()
	n := 0
	for i := range cuts[1:] {
		n += len(w.between(cuts[i], cuts[i+1]))
	}
	if n != len(w.values) {
		t.Fatalf("cut at %v there are %d values, want %d", cuts, n, len(w.values))
	}
}

func TestRandomCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, f := range formats(2000, 9) {
		w := write(t, f, someValues(1000, 800))
		h := header(t, w.data)
		size := int64(len(w.data))
		cuts := []int64{0, size, w.header, w.header + 1}
		for _, m := range w.markers[:3] {
			cuts = append(cuts, m.off-1, m.off, m.off+1, m.off+4, m.off+20)
		}
		for range 10 {
			cuts = append(cuts, random.Int64N(size))
		}
		slices.Sort(cuts)
		once(t, w, cuts)
		for i := range cuts[1:] {
			checkSplit(t, h, w, cuts[i], cuts[i+1])
		}
	}
}
