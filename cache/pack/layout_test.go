package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"rankfs/meta"
)

// Bytes of kinds that codecs treat differently.
var kinds = map[string]func(r *rand.Rand, n int) []byte{
	"zeros":  func(_ *rand.Rand, n int) []byte { return make([]byte, n) },
	"random": func(r *rand.Rand, n int) []byte { return fill(n, func(int) byte { return byte(r.Uint32()) }) },
	"text": func(r *rand.Rand, n int) []byte {
		words := []string{"the ", "batch ", "of ", "a ", "rank ", "is ", "one ", "file, "}
		var b []byte
		for len(b) < n {
			b = append(b, words[r.IntN(len(words))]...)
		}
		return b[:n]
	},
	"floats": func(r *rand.Rand, n int) []byte {
		var b []byte
		for len(b) < n {
			b = binary.LittleEndian.AppendUint32(b, 0x3f800000|r.Uint32()>>16)
		}
		return b[:n]
	},
	"mixed": func(r *rand.Rand, n int) []byte {
		return fill(n, func(i int) byte { return byte(r.Uint32()) * byte(i>>9&1) })
	},
}

func fill(n int, f func(i int) byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = f(i)
	}
	return b
}

// ropeOf cuts bytes into frames as an arena would.
func ropeOf(b []byte) *rope {
	r := &rope{length: int64(len(b))}
	for len(b) > 0 {
		n := min(len(b), frameBytes)
		r.frames = append(r.frames, frame{mem: b[:n:n]})
		b = b[n:]
	}
	return r
}

func bytesOf(r *rope) []byte {
	return bytes.Clone(r.read(make([]byte, r.length), 0, int(r.length)))
}

func newPresses(t testing.TB, block int) chan *press {
	p, err := newPress(block)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	c := make(chan *press, 1)
	c <- p
	return c
}

func always(int64, int64) error { return nil }

// packedBytes is the packed form of plain.
func packedBytes(t testing.TB, presses chan *press, block int, plain []byte, c Codec) []byte {
	t.Helper()
	a, r := newArena(1<<30), new(rope)
	if err := write(a, r, presses, block, Name{1, 31: 2}, plain, c, always); err != nil {
		t.Fatal(err)
	}
	b := bytesOf(r)
	if err := a.end(r); err != nil {
		t.Fatal(err)
	}
	if used, _ := a.usage(); used != 0 || len(a.mu.segments) != 0 {
		t.Fatalf("%d bytes used in %d segments at the end", used, len(a.mu.segments))
	}
	return b
}

func unpackAll(p *press, b, dst []byte) error {
	v, err := parse(ropeOf(b), p.block)
	if err != nil {
		return err
	}
	for i := range v.blocks() {
		if err := v.read(p, i, dst[v.start(i):][:v.size(i)]); err != nil {
			return err
		}
	}
	return nil
}

// A flip of any bit of a packed slab is found, in whatever codec.
func TestEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	plain := append(kinds["mixed"](r, minBlock), kinds["text"](r, 700)...)
	presses := newPresses(t, minBlock)
	for _, c := range append(Codecs(), Codec{}) {
		b := packedBytes(t, presses, minBlock, plain, c)
		p := <-presses
		dst := make([]byte, len(plain))
		if err := unpackAll(p, b, dst); err != nil || !bytes.Equal(dst, plain) {
			t.Fatalf("%v: untouched: %v", c, err)
		}
		for i := range b {
			for bit := range 8 {
				b[i] ^= 1 << bit
				if err := unpackAll(p, b, dst); !errors.Is(err, meta.ErrCorrupt) {
					t.Fatalf("%v: bit %d of byte %d of %d: %v", c, bit, i, len(b), err)
				}
				b[i] ^= 1 << bit
			}
		}
		for _, cut := range []int{0, 1, headSize - 1, headSize, headSize + 1, len(b) - 1} {
			if err := unpackAll(p, b[:cut], dst); !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("%v: first %d bytes of %d: %v", c, cut, len(b), err)
			}
		}
		presses <- p
	}
}

// reseal makes the sums of a packed slab right, so that a decoder gets to see
// what is behind them.
func reseal(b []byte) {
	if len(b) < headSize {
		return
	}
	block, plain := int64(binary.LittleEndian.Uint32(b[4:])), int64(binary.LittleEndian.Uint64(b[8:]))
	if block == 0 || plain < 0 || plain > 1<<30 {
		return
	}
	v := packed{ropeOf(b), int(block), plain}
	if entryAt(v.blocks()) > int64(len(b)) {
		return
	}
	for i := range v.blocks() {
		if e := v.entry(i); e.at >= 0 && e.at <= int64(len(b))-int64(e.length) {
			binary.LittleEndian.PutUint64(b[entryAt(i)+8:], xxhash.Sum64(b[e.at:e.at+int64(e.length)]))
		}
	}
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)))
	binary.LittleEndian.PutUint64(b[headSize-8:], v.headSum())
}

// Whatever is unpacked has the sums that it says, and nothing is written
// outside of where it belongs.
func FuzzUnpack(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	presses := newPresses(f, minBlock)
	for _, c := range append(Codecs(), Codec{}) {
		for _, kind := range []string{"floats", "text", "random"} {
			b := packedBytes(f, presses, minBlock, kinds[kind](r, minBlock+100), c)
			f.Add(b, uint16(0), byte(0))
			f.Add(b, uint16(len(b)-2), byte(77))
		}
	}
	f.Add([]byte(magic), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, x byte) {
		if b = bytes.Clone(b); int(at) < len(b) {
			b[at] ^= x
		}
		reseal(b)
		p := <-presses
		defer func() { presses <- p }()
		v, err := parse(ropeOf(b), minBlock)
		if err != nil {
			if !errors.Is(err, meta.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		guarded := make([]byte, minBlock+64)
		for i := range v.blocks() {
			clear(guarded)
			dst := guarded[32:][:v.size(i)]
			err := v.read(p, i, dst)
			if err == nil && xxhash.Sum64(dst) != v.entry(i).plain || err != nil && !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("block %d: %v", i, err)
			}
			if !zero(guarded[:32]) || !zero(guarded[32+v.size(i):]) {
				t.Errorf("block %d: written outside", i)
			}
		}
	})
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// What is packed comes back, for all codecs, kinds and lengths.
func TestRoundTrip(t *testing.T) {
	presses := newPresses(t, minBlock)
	names := []string{"zeros", "random", "text", "floats", "mixed"}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plain := kinds[rapid.SampledFrom(names).Draw(t, "kind")](r, rapid.IntRange(0, 5*minBlock).Draw(t, "length"))
		c := rapid.SampledFrom(append(Codecs(), Codec{})).Draw(t, "codec")
		a, rope := newArena(1<<30), new(rope)
		if err := write(a, rope, presses, minBlock, Name{}, plain, c, always); err != nil {
			t.Fatal(err)
		}
		if most := headSize + int64(blocksOf(int64(len(plain)), minBlock))*entrySize + int64(len(plain)); rope.length > most {
			t.Errorf("%d bytes became %d", len(plain), rope.length)
		}
		b := bytesOf(rope)
		if err := a.end(rope); err != nil {
			t.Error(err)
		}
		p := <-presses
		defer func() { presses <- p }()
		dst := make([]byte, len(plain))
		if err := unpackAll(p, b, dst); err != nil || !bytes.Equal(dst, plain) {
			t.Errorf("%v: %v", c, err)
		}
	})
}

// What cannot be compressed is stored as it is, and costs its length, its sums
// and nothing else.
func TestIncompressible(t *testing.T) {
	presses := newPresses(t, minBlock)
	plain := kinds["random"](rand.New(rand.NewPCG(3, 3)), 10*minBlock)
	for _, c := range Codecs() {
		b := packedBytes(t, presses, minBlock, plain, c)
		if len(b) != headSize+10*entrySize+len(plain) || !bytes.HasSuffix(b, plain) {
			t.Errorf("%v: %d bytes became %d", c, len(plain), len(b))
		}
	}
}

// Shuffled bytes are those of the plain definition, and come back.
func TestShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 700).Draw(t, "bytes")
		width := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "width")
		got, back := make([]byte, len(b)), make([]byte, len(b))
		shuffle(got, b, width)
		var want []byte
		for k := range width {
			for i := range len(b) / width {
				want = append(want, b[i*width+k])
			}
		}
		want = append(want, b[len(want):]...)
		if !bytes.Equal(got, want) {
			t.Fatalf("%x became %x, want %x", b, got, want)
		}
		unshuffle(back, got, width)
		if !bytes.Equal(back, b) {
			t.Fatalf("%x came back as %x", b, back)
		}
	})
}
