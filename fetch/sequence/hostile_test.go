package sequence_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"rankfs/fetch/sequence"
	"rankfs/meta"
)

func TestRefusedHeaders(t *testing.T) {
	good := write(t, format{6, "block", "SnappyCodec", text, 100, 1}, nil).data
	flags := bytes.Index(good, []byte(text)) + len(text)
	entries := bytes.Index(good, []byte("SnappyCodec")) + len("SnappyCodec")
	for name, c := range map[string]struct {
		data []byte
		is   error
		says string
	}{
		"empty":          {nil, meta.ErrInvalid, "SEQ"},
		"another format": {[]byte("PAR1 and so on"), meta.ErrInvalid, "SEQ"},
		"version 3":      {[]byte("SEQ\x03 and so on"), meta.ErrInvalid, "version 3"},
		"version 7":      {[]byte("SEQ\x07 and so on"), meta.ErrInvalid, "version 7"},
		"codec":          {bytes.Replace(good, []byte("SnappyCodec"), []byte("SloppyCodec"), 1), meta.ErrInvalid, `SloppyCodec" is not one that can be read: write the file with one of BZip2Codec`},
		"no compression": {with(good, flags, 0, 1), meta.ErrCorrupt, "blocks without compression"},
		"class":          {append([]byte("SEQ\x06"), 0x8c, 0x7f, 0xff, 0xff, 0xff), meta.ErrCorrupt, "offset 9: a text of 2147483647 bytes"},
		"negative class": {append([]byte("SEQ\x06"), 0x87, 0x80), meta.ErrCorrupt, "a text of -129 bytes"},
		"vint":           {append([]byte("SEQ\x06"), 0x88, 1, 2, 3, 4, 5, 6, 7, 8), meta.ErrCorrupt, "32 bits"},
		"metadata":       {with(good, entries, 0xff, 0, 0, 0), meta.ErrCorrupt, "entries of metadata"},
		"much metadata":  {with(good, entries, 0x7f, 0xff, 0xff, 0xff), meta.ErrCorrupt, "offset "},
		"endless":        {append(with(good[:entries+4], entries, 0x7f, 0, 0, 0), make([]byte, 2<<20)...), meta.ErrCorrupt, "more than 1048576 bytes"},
	} {
		_, err := sequence.ReadHeader(bytes.NewReader(c.data), int64(len(c.data)))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for n := range good {
		if _, err := sequence.ReadHeader(bytes.NewReader(good), int64(n)); err == nil {
			t.Errorf("a header cut to %d bytes is accepted", n)
		}
	}
}

// with is a copy of b with other bytes at off.
func with(b []byte, off int, other ...byte) []byte {
	b = slices.Clone(b)
	copy(b[off:], other)
	return b
}

// A body is what follows a header.
func body(t *testing.T, f format, parts ...any) []byte {
	t.Helper()
	b := write(t, f, nil).data
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func TestDamage(t *testing.T) {
	var (
		none   = format{5, "none", "", bytesWritable, 100, 1}
		texts  = format{5, "none", "", text, 100, 1}
		zlib   = format{5, "record", "DefaultCodec", bytesWritable, 100, 1}
		snappy = format{5, "record", "SnappyCodec", bytesWritable, 100, 1}
		lz4    = format{5, "record", "Lz4Codec", bytesWritable, 100, 1}
		block  = format{5, "block", "DefaultCodec", bytesWritable, 100, 1}
		marker = append([]byte{255, 255, 255, 255}, sync...)
		pack   = packer(t, "DefaultCodec")
		empty  = string(appendVint(nil, len(pack(nil)))) + string(pack(nil))
		sizes  = func(n ...int) string {
			var b []byte
			for _, n := range n {
				b = appendVint(b, n)
			}
			return string(appendVint(nil, len(pack(b)))) + string(pack(b))
		}
	)
	for name, c := range map[string]struct {
		f    format
		rest []any
		says string
	}{
		"negative record":    {none, []any{-2, 0}, "a record of -2 bytes"},
		"negative key":       {none, []any{4, -4, "abcdabcd"}, "a key of -4"},
		"long key":           {none, []any{4, 5, "abcdabcd"}, "a key of 5"},
		"long record":        {none, []any{math.MaxInt32, 4, "abcd"}, "2147483647 bytes"},
		"cut":                {none, []any{8, 0, 4, "abc"}, "7 left of the file"},
		"cut length":         {none, []any{"abc"}, "4 more bytes are needed"},
		"short value":        {none, []any{3, 0, "abc"}, "a value of 3 bytes"},
		"length of bytes":    {none, []any{8, 0, 5, "abcd"}, "says it has 5 bytes"},
		"negative bytes":     {none, []any{8, 0, -4, "abcd"}, "says it has -4 bytes"},
		"length of text":     {texts, []any{5, 0, "\x05abcd"}, "says it has 5 bytes"},
		"long vint":          {texts, []any{6, 0, "\x8f\x04abcd"}, "more bytes than it takes"},
		"no size of texts":   {texts, []any{129, 0, make([]byte, 129)}, "no org.apache.hadoop.io.Text has that size"},
		"sync":               {none, []any{-1, make([]byte, 16)}, "not the file's"},
		"cut sync":           {none, []any{-1, "abc"}, "16 more bytes"},
		"zlib":               {zlib, []any{4, 0, "abcd"}, "zlib"},
		"no zlib":            {zlib, []any{0, 0}, "unexpected EOF"},
		"cut zlib":           {zlib, []any{10, 0, pack([]byte("\x00\x00\x00\x40" + strings.Repeat("ab", 32)))[:10]}, "unexpected EOF"},
		"after zlib":         {zlib, []any{len(pack(make([]byte, 4))) + 1, 0, pack(make([]byte, 4)), "a"}, "after the last value"},
		"chunk":              {snappy, []any{8, 0, 4, -4}, "a frame of -4 bytes"},
		"group":              {snappy, []any{4, 0, -4}, "a frame of -4 bytes"},
		"cut frame":          {snappy, []any{8, 0, 4, 100}, "unexpected EOF"},
		"frame over group":   {snappy, []any{14, 0, 4, 6, "\x05\x10\x00\x00\x00\x00"}, "longer than it should be"},
		"snappy":             {snappy, []any{14, 0, 6, 6, "\x06\xff\xff\xff\xff\xff"}, "corrupt"},
		"lz4 literals":       {lz4, []any{10, 0, 4, 2, "\xf0\xff"}, "LZ4"},
		"lz4 back":           {lz4, []any{12, 0, 9, 4, "\x10a\x02\x00"}, "LZ4"},
		"lz4 zero back":      {lz4, []any{12, 0, 9, 4, "\x10a\x00\x00"}, "LZ4"},
		"lz4 too long":       {lz4, []any{16, 0, 9, 8, "\x1fa\x01\x00\xff\xff\xff\x00"}, "LZ4"},
		"lz4 ends":           {lz4, []any{11, 0, 9, 3, "\x10a\x01"}, "LZ4"},
		"no marker":          {block, []any{"\x01", empty, empty}, "without a sync marker"},
		"records":            {block, []any{marker, "\x8c\x01\x00\x00\x01", empty}, "16777217 records"},
		"negative records":   {block, []any{marker, "\xff", empty}, "-1 records"},
		"buffer":             {block, []any{marker, "\x01\x7f"}, "a buffer of 127 bytes"},
		"negative buffer":    {block, []any{marker, "\x01\xff"}, "a buffer of -1 bytes"},
		"few sizes":          {block, []any{marker, "\x02", empty, empty, sizes(4), sizes(0, 0, 0, 0)}, "lengths of values"},
		"many sizes":         {block, []any{marker, "\x01", empty, empty, sizes(4, 4), sizes(0, 0, 0, 0)}, "after the last value"},
		"block ends":         {block, []any{marker, "\x01"}, "unexpected EOF"},
		"values longer":      {block, []any{marker, "\x01", empty, empty, sizes(4), sizes(0, 0, 0, 0, 0)}, "after the last value"},
		"values shorter":     {block, []any{marker, "\x01", empty, empty, sizes(4), sizes(0, 0, 0)}, "length of a value"},
		"prefix in a block":  {block, []any{marker, "\x01", empty, empty, sizes(5), sizes(0, 0, 0, 4, 9)}, "says it has 4 bytes"},
		"after block values": {block, []any{marker, "\x01", empty, empty, sizes(4), string(appendVint(nil, len(pack(make([]byte, 4)))+1)), pack(make([]byte, 4)), "a"}, "after the last value"},
	} {
		data := body(t, c.f, c.rest...)
		err := split(header(t, data), data, 0, int64(len(data))).Copy(t.Context(), make([]byte, 1<<10))
		if !errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "offset ") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, which is damage of the file and not of the stream", name, err)
		}
	}
}

// What a decoder's buffers hold of the record before is not what a damaged
// record says.
func TestDamageAfterARecord(t *testing.T) {
	for codec, chunk := range map[string]string{
		"SnappyCodec": "\x06\xff\xff\xff\xff\xff",
		"Lz4Codec":    "\x10a\x02\x00",
	} {
		f := format{5, "record", codec, bytesWritable, 100, 1}
		good := packer(t, codec)(append([]byte{0, 0, 0, 100}, make([]byte, 100)...))
		data := body(t, f, len(good), 0, good, 8+len(chunk), 0, 6, len(chunk), chunk)
		read := func() *sequence.Split { return split(header(t, data), data, 0, int64(len(data))) }
		values := 0
		err := read().Scan(t.Context(), func(_, _ int64) error { values++; return nil })
		if values != 1 || !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: %d values, then %v", codec, values, err)
		}
		if err := read().Copy(t.Context(), make([]byte, 100)); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

// A block may not claim more than Java could hold of it.
func TestSumOfSizes(t *testing.T) {
	f := format{5, "block", "DefaultCodec", bytesWritable, 100, 1}
	pack := packer(t, f.codec)
	buffer := func(b []byte) []byte { return append(appendVint(nil, len(pack(b))), pack(b)...) }
	sizes := buffer(appendVint(appendVint(nil, math.MaxInt32), 4))
	data := body(t, f, -1, sync, "\x02", buffer(nil), buffer(nil), sizes, buffer(nil))
	err := split(header(t, data), data, 0, int64(len(data))).Scan(t.Context(), func(int64, int64) error { return nil })
	if !errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), "in a block of 2147483651") {
		t.Error(err)
	}
}

// Zlib streams may follow one another.
func TestStreamAfterStream(t *testing.T) {
	f := format{5, "record", "DefaultCodec", other, 100, 1}
	pack := packer(t, f.codec)
	value := append(pack([]byte("one")), pack([]byte("two"))...)
	data := body(t, f, len(value), 0, value)
	dst := make([]byte, 6)
	err := split(header(t, data), data, 0, int64(len(data))).Copy(t.Context(), dst)
	if err != nil || string(dst) != "onetwo" {
		t.Errorf("%q, %v", dst, err)
	}
}

// A file cut anywhere is corrupt, unless it ends between records.
func TestTruncated(t *testing.T) {
	for _, f := range formats(100, 2) {
		w := write(t, f, someValues(12, 40))
		h := header(t, w.data)
		sound := 0
		for n := w.header; n < int64(len(w.data)); n++ {
			err := split(h, w.data[:n], 0, n).Copy(t.Context(), make([]byte, len(bytes.Join(w.values, nil))))
			if errors.Is(err, meta.ErrStale) || err == nil { // nil: what is cut off is an empty value
				sound++
			} else if !errors.Is(err, meta.ErrCorrupt) {
				t.Fatalf("%v cut to %d of %d: %v", f, n, len(w.data), err)
			}
		}
		if most := len(w.values) + 2*len(w.markers) + 1; sound > most {
			t.Errorf("%v: sound when cut at %d places, want at most %d", f, sound, most)
		}
	}
}

func TestBrokenStream(t *testing.T) {
	boom := errors.New("boom")
	for _, f := range formats(100, 2) {
		w := write(t, f, someValues(12, 40))
		h := header(t, w.data)
		size := int64(len(w.data))
		dst := make([]byte, len(bytes.Join(w.values, nil)))
		for n := int64(0); n < size; n += 5 {
			short := bytes.NewReader(w.data[:n])
			if err := h.Split(short, size, 0, size).Copy(t.Context(), dst); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, meta.ErrCorrupt) {
				t.Fatalf("%v: stream of %d bytes: %v", f, n, err)
			}
			broken := io.MultiReader(bytes.NewReader(w.data[:n]), iotest.ErrReader(boom))
			if err := h.Split(broken, size, 0, size).Copy(t.Context(), dst); !errors.Is(err, boom) || errors.Is(err, meta.ErrCorrupt) {
				t.Fatalf("%v: broken after %d bytes: %v", f, n, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := split(h, w.data, 0, size).Copy(ctx, dst); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: after a cancel: %v", f, err)
		}
	}
}

func TestOtherLength(t *testing.T) {
	boom := errors.New("boom")
	for _, f := range formats(100, 2) {
		w := write(t, f, someValues(12, 40))
		h := header(t, w.data)
		size := int64(len(w.data))
		all := len(bytes.Join(w.values, nil))
		for _, n := range []int{0, 1, all - 1, all + 1} {
			if err := split(h, w.data, 0, size).Copy(t.Context(), make([]byte, n)); !errors.Is(err, meta.ErrStale) {
				t.Errorf("%v: %d bytes into %d: %v", f, all, n, err)
			}
		}
		p := split(h, w.data, 0, size)
		if err := p.Scan(t.Context(), func(int64, int64) error { return boom }); err != boom {
			t.Errorf("%v: %v from each", f, err)
		}
		if err := p.Scan(t.Context(), nil); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%v: read twice: %v", f, err)
		}
	}
}

// What a file claims or expands to decides nothing about memory.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	for _, codec := range []string{"DefaultCodec", "GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec"} {
		for _, kind := range []string{"record", "block"} {
			w := write(t, format{6, kind, codec, other, 100, 0}, [][]byte{zeros})
			h := header(t, w.data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var length int64
			err := split(h, w.data, 0, int64(len(w.data))).Scan(t.Context(), func(_, n int64) error {
				length += n
				return nil
			})
			if stale := split(h, w.data, 0, int64(len(w.data))).Copy(t.Context(), make([]byte, 100)); !errors.Is(stale, meta.ErrStale) {
				t.Errorf("%s %s: 64 MiB into 100 bytes: %v", kind, codec, stale)
			}
			runtime.ReadMemStats(&after)
			if err != nil || length != int64(len(zeros)) {
				t.Errorf("%s %s: %d bytes: %v", kind, codec, length, err)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
				t.Errorf("%s %s: %d bytes of memory", kind, codec, taken)
			}
		}
	}
}

// What is written in frames that are too large to be read is refused when it is
// scanned, and is not said to be corrupt.
func TestLargeChunks(t *testing.T) {
	const large = 5 << 20
	random := make([]byte, large)
	rand.NewChaCha8([32]byte{}).Read(random)
	for _, c := range []struct {
		name, codec string
		value       []byte
		pack        func([]byte) []byte
	}{
		{"large when packed", "SnappyCodec", random, packSnappy},
		{"large when packed", "Lz4Codec", random, func(b []byte) []byte { return lz4Sequence(nil, b, 4) }},
		{"large when unpacked", "SnappyCodec", make([]byte, large), packSnappy},
		{"large when unpacked", "Lz4Codec", make([]byte, large), packLz4},
	} {
		for _, kind := range []string{"record", "block"} {
			for _, class := range []string{bytesWritable, other} {
				w := writePacked(format{6, kind, c.codec, class, 100, 1}, [][]byte{c.value}, func(b []byte) []byte { return frame(b, 8<<20, c.pack) })
				h := header(t, w.data)
				size := int64(len(w.data))
				for does, err := range map[string]error{
					"scan": split(h, w.data, 0, size).Scan(t.Context(), func(int64, int64) error { return nil }),
					"copy": split(h, w.data, 0, size).Copy(t.Context(), make([]byte, large)),
				} {
					if !errors.Is(err, meta.ErrInvalid) || errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), "smaller buffer of the codec") {
						t.Errorf("%v, %s: %s: %v", w.format, c.name, does, err)
					}
				}
			}
		}
	}
}
