package record_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

func BenchmarkDivide(b *testing.B) {
	for _, spec := range []string{"record=line key=1", "record=line key=1 sort=key", "record=line key=1 combine=sum", "record=line key=2 combine=first"} {
		b.Run(spec, func(b *testing.B) {
			s, _ := meta.ParseStage(spec)
			text := benchText()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := record.Spec(s.Records).Divide(b.Context(), text, nil, 8, new(heap)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Of words few are frequent, and most of those that there are come a few times.
func BenchmarkDivideWords(b *testing.B) {
	spec, _ := meta.ParseStage("record=line key=1 combine=sum")
	r := rand.New(rand.NewPCG(5, 6))
	var text []byte
	for len(text) < 16<<20 {
		text = fmt.Appendf(text, "%x\t1\n", uint64(math.Exp2(18*r.Float64()))*0x9e3779b9)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := record.Spec(spec.Records).Divide(b.Context(), text, nil, 8, new(heap)); err != nil {
			b.Fatal(err)
		}
	}
}

// A map that is in order is looked at once.
func BenchmarkDivideInOrder(b *testing.B) {
	for _, spec := range []string{"record=line by=range", "record=line key=1 by=range", "record=line key=1 sort=key:number"} {
		b.Run(spec, func(b *testing.B) {
			parsed, _ := meta.ParseStage(spec)
			s, text := record.Spec(parsed.Records), bytes.Repeat([]byte("0123456789\twhat belongs to it, so that there are a hundred bytes in a line of such lines as are sorted\n"), 1<<18)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if is, err := s.Divide(b.Context(), text, nil, 1, new(heap)); err != nil || !is.AsWritten {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, runs := range []int{16, 256} {
		b.Run(fmt.Sprint("runs=", runs), func(b *testing.B) {
			parsed, _ := meta.ParseStage("record=line key=1 sort=key")
			s, text := record.Spec(parsed.Records), benchText()
			is, err := s.Divide(b.Context(), text, nil, uint64(runs), new(heap))
			if err != nil {
				b.Fatal(err)
			}
			var all []record.Run
			for i := range runs {
				all = append(all, record.Run{Buffers: [][]byte{is.Bytes[number(is.Offsets, i):number(is.Offsets, i+1)]}})
			}
			dst := make([]byte, len(text))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := s.Merge(b.Context(), all, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchText are 16 MiB of lines of some 40 bytes.
func benchText() []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b []byte
	for len(b) < 16<<20 {
		b = fmt.Appendf(b, "%016x\t%d\tsome more of a line\n", r.Uint64(), r.IntN(1000))
	}
	return b
}
