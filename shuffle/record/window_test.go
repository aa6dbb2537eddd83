package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// Some bytes of a merge are those that all of it has there, wherever they are, also where
// windows overlap; and what is beyond its end is an error.
func TestSomeOfAMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	var all []byte
	var runs []record.Run
	for i := range 3 {
		var run []byte
		for k := range 2000 {
			run = fmt.Appendf(run, "%05d\t%d\n", 3*k+i, k)
		}
		runs, all = append(runs, record.Run{Buffers: [][]byte{run}}), append(all, run...)
	}
	spec := record.Spec{Kind: meta.Lines, Sep: '\t', Order: meta.ByKey}
	whole := make([]byte, len(all))
	if n, err := spec.Merge(context.Background(), runs, whole); err != nil || n != int64(len(all)) {
		t.Fatalf("%d bytes: %v", n, err)
	}
	for range 200 {
		var some record.Windows
		for range 1 + r.IntN(5) {
			off := r.IntN(len(whole))
			some = append(some, record.Window{Off: int64(off), To: make([]byte, 1+r.IntN(min(5000, len(whole)-off)))})
		}
		slices.SortFunc(some, func(a, b record.Window) int { return int(a.Off - b.Off) })
		if err := spec.MergeSome(context.Background(), runs, some); err != nil {
			t.Fatal(err)
		}
		for _, w := range some {
			if !bytes.Equal(w.To, whole[w.Off:w.Off+int64(len(w.To))]) {
				t.Fatalf("%d bytes from %d on are others", len(w.To), w.Off)
			}
		}
	}
	for _, off := range []int{len(whole) - 1, len(whole), len(whole) + 9} {
		err := spec.MergeSome(context.Background(), runs, record.Windows{{Off: int64(off), To: make([]byte, 2)}})
		if !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("two bytes from %d on of %d: %v", off, len(whole), err)
		}
	}
	if err := spec.MergeSome(context.Background(), nil, record.Windows{{To: make([]byte, 1)}}); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("a byte of nothing: %v", err)
	}
}
