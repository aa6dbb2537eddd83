package sequence_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// words are n bytes that compress about as well as text does.
func words(n int) []byte {
	random := rand.New(rand.NewPCG(5, 6))
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "%x ", random.ExpFloat64()*0x100)
	}
	return b[:n]
}

func BenchmarkRead(b *testing.B) {
	const total = 32 << 20
	all := words(total)
	for _, size := range []int{128, 4 << 10, 256 << 10} {
		var values [][]byte
		for at := 0; at < total; at += size {
			values = append(values, all[at:at+size])
		}
		for _, f := range []format{
			{6, "none", "", bytesWritable, 100 << 10, 4},
			{6, "none", "", text, 100 << 10, 4},
			{6, "record", "DefaultCodec", bytesWritable, 100 << 10, 4},
			{6, "record", "SnappyCodec", bytesWritable, 100 << 10, 4},
			{6, "block", "DefaultCodec", bytesWritable, 1_000_000, 4},
			{6, "block", "SnappyCodec", bytesWritable, 1_000_000, 4},
			{6, "block", "Lz4Codec", bytesWritable, 1_000_000, 4},
			{6, "block", "ZStandardCodec", bytesWritable, 1_000_000, 4},
		} {
			w := write(b, f, values)
			h := header(b, w.data)
			dst := make([]byte, total)
			if err := split(h, w.data, 0, int64(len(w.data))).Copy(b.Context(), dst); err != nil || !bytes.Equal(dst, all) {
				b.Fatalf("%v: not what was written: %v", f, err)
			}
			run := func(read func() error) func(*testing.B) {
				return func(b *testing.B) {
					b.SetBytes(total)
					b.ReportAllocs()
					for b.Loop() {
						if err := read(); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			name := fmt.Sprintf("%s-%s-%s/%d", f.kind, f.codec, strings.TrimPrefix(f.value, "org.apache.hadoop.io."), size)
			b.Run("copy/"+name, run(func() error {
				return split(h, w.data, 0, int64(len(w.data))).Copy(b.Context(), dst)
			}))
			b.Run("scan/"+name, run(func() error {
				return split(h, w.data, 0, int64(len(w.data))).Scan(b.Context(), func(_, _ int64) error { return nil })
			}))
		}
	}
}
