package sequence_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	bytesWritable = "org.apache.hadoop.io.BytesWritable"
	text          = "org.apache.hadoop.io.Text"
	other         = "org.example.Other"
	compress      = "org.apache.hadoop.io.compress."
)

// A format is a kind of SequenceFile that the tests write.
type format struct {
	version byte
	kind    string // none, record, block
	codec   string // without the package
	value   string // class
	every   int    // bytes between markers, or of a block
	key     int    // bytes of each key
}

func (f format) String() string {
	return fmt.Sprintf("%d/%s/%s/%s/%d", f.version, f.kind, f.codec, f.value, f.every)
}

// A file is what was written, and what should be read.
type file struct {
	format
	data    []byte
	values  [][]byte
	header  int64
	markers []mark
}

// A mark is a marker in the file.
type mark struct {
	off   int64
	first int // the value after it
}

// between returns the values of the split [from, to).
func (f *file) between(from, to int64) [][]byte {
	if from >= to {
		return nil
	}
	first := f.after(from)
	if from == 0 {
		first = 0
	}
	return f.values[first:max(first, f.after(to))]
}

func (f *file) after(off int64) int {
	for _, m := range f.markers {
		if m.off >= off {
			return m.first
		}
	}
	return len(f.values)
}

var sync = []byte{0xff, 0xff, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// write makes a file of the values.
func write(t testing.TB, f format, values [][]byte) *file {
	t.Helper()
	return writePacked(f, values, packer(t, f.codec))
}

// writePacked makes a file of values that pack compresses.
func writePacked(f format, values [][]byte, pack func([]byte) []byte) *file {
	w := &writer{pack: pack, file: &file{format: f, values: values}}
	w.head()
	if f.kind == "block" {
		w.blocks()
	} else {
		w.records()
	}
	w.file.data = w.out
	return w.file
}

type writer struct {
	*file
	pack func([]byte) []byte
	out  []byte
}

func (w *writer) head() {
	w.out = append(w.out, 'S', 'E', 'Q', w.version)
	w.text("org.apache.hadoop.io.BytesWritable")
	w.text(w.value)
	w.out = append(w.out, flag(w.kind != "none"), flag(w.kind == "block"))
	if w.version >= 5 && w.kind != "none" {
		w.text(compress + w.codec)
	}
	if w.version >= 6 {
		w.int32(2)
		for _, s := range []string{"made", "by a test", "empty", ""} {
			w.text(s)
		}
	}
	w.out = append(w.out, sync...)
	w.header = int64(len(w.out))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (w *writer) int32(n int)   { w.out = binary.BigEndian.AppendUint32(w.out, uint32(n)) }
func (w *writer) text(s string) { w.out = append(appendVint(w.out, len(s)), s...) }

func (w *writer) marker(first int) {
	w.markers = append(w.markers, mark{int64(len(w.out)), first})
	w.int32(-1)
	w.out = append(w.out, sync...)
}

func (w *writer) records() {
	last := 0
	for i, v := range w.values {
		if len(w.out) >= last+w.every {
			w.marker(i)
			last = len(w.out)
		}
		v = serialise(w.value, v)
		if w.kind == "record" {
			v = w.pack(v)
		}
		w.int32(w.key + len(v))
		w.int32(w.key)
		w.out = append(append(w.out, make([]byte, w.key)...), v...)
	}
}

func (w *writer) blocks() {
	for first := 0; first < len(w.values); {
		var keySizes, keys, sizes, values []byte
		n := 0
		for _, v := range w.values[first:] {
			if n > 0 && len(keys)+len(values) >= w.every {
				break
			}
			v = serialise(w.value, v)
			keySizes, keys = appendVint(keySizes, w.key), append(keys, make([]byte, w.key)...)
			sizes, values = appendVint(sizes, len(v)), append(values, v...)
			n++
		}
		w.marker(first)
		w.out = appendVint(w.out, n)
		for _, b := range [][]byte{keySizes, keys, sizes, values} {
			b = w.pack(b)
			w.out = append(appendVint(w.out, len(b)), b...)
		}
		first += n
	}
}

func serialise(class string, v []byte) []byte {
	switch class {
	case bytesWritable:
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(v))), v...)
	case text:
		return append(appendVint(nil, len(v)), v...)
	}
	return v
}

// appendVint writes a number of 0 or more as Hadoop does.
func appendVint(b []byte, n int) []byte {
	if n <= 127 {
		return append(b, byte(n))
	}
	var digits []byte
	for ; n > 0; n >>= 8 {
		digits = append([]byte{byte(n)}, digits...)
	}
	return append(append(b, byte(-112-len(digits))), digits...)
}

// packer returns what compresses as a codec of Hadoop does.
func packer(t testing.TB, codec string) func([]byte) []byte {
	var out bytes.Buffer
	var w interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	switch codec {
	case "SnappyCodec":
		return func(b []byte) []byte { return frame(b, chunk, packSnappy) }
	case "Lz4Codec":
		return func(b []byte) []byte { return frame(b, chunk, packLz4) }
	case "GzipCodec":
		w = gzip.NewWriter(&out)
	case "ZStandardCodec":
		var err error
		if w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	default:
		w = zlib.NewWriter(&out)
	}
	return func(b []byte) []byte {
		out.Reset()
		w.Reset(&out)
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(out.Bytes())
	}
}

const chunk = 218 << 10 // what fits a buffer of 256 KiB when it does not shrink

func packSnappy(b []byte) []byte { return snappy.Encode(nil, b) }

// frame writes b as Hadoop does for codecs that know only blocks.
func frame(b []byte, chunk int, pack func([]byte) []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	for len(b) > 0 {
		n := min(len(b), chunk)
		p := pack(b[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(p))), p...)
		b = b[n:]
	}
	return out
}

// packLz4 is a plain compressor: it repeats what began with the same four
// bytes when they were seen last.
func packLz4(b []byte) []byte {
	var out []byte
	seen := make(map[uint32]int)
	begin := 0
	for i := 0; i+12 < len(b); {
		word := binary.LittleEndian.Uint32(b[i:])
		from, ok := seen[word]
		seen[word] = i
		if !ok || i-from > 65535 {
			i++
			continue
		}
		n := 4
		for i+n < len(b)-5 && b[from+n] == b[i+n] {
			n++
		}
		out = lz4Sequence(out, b[begin:i], n)
		out = binary.LittleEndian.AppendUint16(out, uint16(i-from))
		out = lz4Rest(out, n-4)
		i += n
		begin = i
	}
	return lz4Sequence(out, b[begin:], 4)
}

func lz4Sequence(out, literals []byte, n int) []byte {
	out = append(out, byte(min(len(literals), 15)<<4|min(n-4, 15)))
	return append(lz4Rest(out, len(literals)), literals...)
}

func lz4Rest(out []byte, n int) []byte {
	if n < 15 {
		return out
	}
	for n -= 15; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(out, byte(n))
}
