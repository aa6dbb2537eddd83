package sequence_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"rankfs/fetch/sequence"
)

// formats are all kinds of files that the tests can write; bzip2 is among the
// golden files.
func formats(every, key int) []format {
	var all []format
	for _, class := range []string{bytesWritable, text, other} {
		all = append(all,
			format{4, "none", "", class, every, key},
			format{5, "none", "", class, every, key},
			format{6, "none", "", class, every, key},
			format{4, "record", "DefaultCodec", class, every, key},
			format{4, "block", "DefaultCodec", class, every, key})
		for _, codec := range []string{"DefaultCodec", "DeflateCodec", "GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec"} {
			all = append(all, format{5, "record", codec, class, every, key},
				format{6, "record", codec, class, every, key}, format{6, "block", codec, class, every, key})
		}
	}
	return all
}

// someValues are n values whose lengths include what is special, half of them
// compressible.
func someValues(n, most int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([][]byte, n)
	for i := range values {
		size := random.IntN(most)
		if special := []int{0, 1, 127, 128, 129, 130, 255, 256, 257}; i < len(special) {
			size = min(most, special[i])
		}
		values[i] = make([]byte, size)
		for j := range values[i] {
			values[i][j] = byte(random.Uint32()) & byte(i%2*0xf0+3)
		}
	}
	return values
}

func header(t testing.TB, data []byte) sequence.Header {
	t.Helper()
	h, err := sequence.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func split(h sequence.Header, data []byte, from, to int64) *sequence.Split {
	return h.Split(bytes.NewReader(data[min(from, int64(len(data))):]), int64(len(data)), from, to)
}

// checkSplit compares what a split has with what it should.
func checkSplit(t *testing.T, h sequence.Header, f *file, from, to int64) {
	t.Helper()
	want := f.between(from, to)
	var got []int64
	scan := split(h, f.data, from, to)
	err := scan.Scan(t.Context(), func(off, n int64) error {
		if i := len(got); i < len(want) && off >= 0 && !bytes.Equal(f.data[off:off+n], want[i]) {
			t.Errorf("[%d,%d) value %d is not at offset %d", from, to, i, off)
		}
		got = append(got, n)
		return nil
	})
	if err != nil {
		t.Fatalf("[%d,%d): %v", from, to, err)
	}
	if !slices.EqualFunc(got, want, func(n int64, v []byte) bool { return n == int64(len(v)) }) {
		t.Fatalf("[%d,%d): lengths %v, want those of %d values", from, to, got, len(want))
	}
	all := bytes.Join(want, nil)
	dst := make([]byte, len(all))
	from = min(from, int64(len(f.data)))
	if err := h.Split(bytes.NewReader(f.data[from:scan.Offset()]), int64(len(f.data)), from, to).Copy(t.Context(), dst); err != nil {
		t.Fatalf("[%d,%d): %v", from, to, err)
	}
	if !bytes.Equal(dst, all) {
		t.Fatalf("[%d,%d): the values are not those that were written", from, to)
	}
}

func TestFormats(t *testing.T) {
	for _, f := range formats(3000, 5) {
		t.Run(f.String(), func(t *testing.T) {
			for _, values := range [][][]byte{nil, {nil}, someValues(100, 600), someValues(6, 700_000)} {
				w := write(t, f, values)
				h := header(t, w.data)
				checkHeader(t, h, w)
				checkSplit(t, h, w, 0, int64(len(w.data)))
			}
		})
	}
}

func checkHeader(t *testing.T, h sequence.Header, w *file) {
	t.Helper()
	codec := ""
	if w.kind != "none" {
		codec = compress + w.codec
	}
	if h.Version != int(w.version) || h.Value != w.value ||
		h.Compression.String() != w.kind || h.Codec != codec || h.Length != w.header {
		t.Errorf("header %+v of %v", h, w.format)
	}
}

// However the stream cuts its reads, the values are the same.
func TestStreams(t *testing.T) {
	for _, f := range formats(3000, 5) {
		w := write(t, f, someValues(40, 300))
		all := bytes.Join(w.values, nil)
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"bytes": iotest.OneByteReader, "half": iotest.HalfReader, "data and error": iotest.DataErrReader,
		} {
			dst := make([]byte, len(all))
			h := header(t, w.data)
			if err := h.Split(cut(bytes.NewReader(w.data)), int64(len(w.data)), 0, int64(len(w.data))).Copy(context.Background(), dst); err != nil || !bytes.Equal(dst, all) {
				t.Errorf("%v by %s: %v", f, name, err)
			}
		}
	}
}
