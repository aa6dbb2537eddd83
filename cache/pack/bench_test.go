package pack

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// datum is an image as Caffe keeps it in a database: a protocol buffer of
// channels, height, width, 3072 bytes of pixels and a label.
func datum(r *rand.Rand, pixel func(x, y float64) float64) []byte {
	b := []byte{0x08, 3, 0x10, 32, 0x18, 32, 0x22, 0x80, 0x18}
	for range 3 {
		for i := range 32 * 32 {
			b = append(b, byte(min(max(pixel(float64(i%32), float64(i/32)), 0), 255)))
		}
	}
	return append(b, 0x28, byte(r.IntN(10)))
}

// photo has a gradient and a wave, and the noise of a camera.
func photo(r *rand.Rand) []byte {
	base, slope, wave, phase := r.Float64()*160, r.Float64()*3, r.Float64()*30, r.Float64()*6
	return datum(r, func(x, y float64) float64 {
		return base + slope*y + wave*math.Sin(x/5+y/9+phase) + 2*r.NormFloat64()
	})
}

// digit is a stroke on an empty ground.
func digit(r *rand.Rand) []byte {
	size, from, phase := 8+4*r.Float64(), 1+2*r.Float64(), r.Float64()*6
	return datum(r, func(x, y float64) float64 {
		turn := math.Atan2(y-16, x-16) + phase
		return 255 * (from - math.Abs(math.Hypot(x-16, y-16)-size*(1+math.Sin(turn)/3)))
	})
}

// many is a dataset of images.
func many(image func(*rand.Rand) []byte) func(r *rand.Rand, n int) []byte {
	return func(r *rand.Rand, n int) []byte {
		var b []byte
		for len(b) < n {
			d := image(r)
			b = binary.AppendUvarint(b, uint64(len(d)))
			b = append(b, d...)
		}
		return b[:n]
	}
}

var benchKinds = []struct {
	name string
	make func(r *rand.Rand, n int) []byte
}{{"photos", many(photo)}, {"digits", many(digit)}, {"text", kinds["text"]}, {"floats", kinds["floats"]}, {"random", kinds["random"]}}

// cpu is the processor time that f takes, on one thread: it is the same whatever else
// runs on the machine.
func cpu(b *testing.B, plain int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	n := 0
	for b.Loop() {
		f()
		n++
	}
	took := threadTime() - start
	b.ReportMetric(float64(plain)*float64(n)/took.Seconds()/1e6, "cpu-MB/s")
	b.ReportMetric(float64(took)/float64(time.Microsecond)/float64(n)/(float64(plain)/(1<<20)), "cpu-us/MiB")
}

func benchCodecs(b *testing.B, run func(b *testing.B, p *press, plain []byte, c Codec)) {
	presses := newPresses(b, defaultBlock)
	p := <-presses
	for _, kind := range benchKinds {
		plain := kind.make(rand.New(rand.NewPCG(5, 5)), defaultBlock)
		for _, c := range Codecs() {
			b.Run(kind.name+"/"+c.String(), func(b *testing.B) { run(b, p, plain, c) })
		}
	}
}

func BenchmarkPack(b *testing.B) {
	benchCodecs(b, func(b *testing.B, p *press, plain []byte, c Codec) {
		var n int
		cpu(b, len(plain), func() {
			packed, _, err := p.pack(plain, c)
			if err != nil {
				b.Fatal(err)
			}
			n = len(packed)
		})
		b.ReportMetric(float64(n)/float64(len(plain)), "ratio")
	})
}

func BenchmarkUnpack(b *testing.B) {
	dst := make([]byte, defaultBlock)
	benchCodecs(b, func(b *testing.B, p *press, plain []byte, c Codec) {
		packed, as, err := p.pack(plain, c)
		if err != nil {
			b.Fatal(err)
		}
		packed = append([]byte(nil), packed...)
		cpu(b, len(plain), func() {
			if err := p.unpack(dst, packed, as); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// A slab goes through a store as a cache has it: sums, pages and all.
func BenchmarkStore(b *testing.B) {
	plain := many(digit)(rand.New(rand.NewPCG(5, 5)), 16<<20)
	dst := make([]byte, len(plain))
	for _, c := range []Codec{{Algorithm: S2}, {Algorithm: ZstdFastest}} {
		s, err := NewKeyed[int](Config{Bytes: 64 << 20, Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("put/"+c.String(), func(b *testing.B) {
			cpu(b, len(plain), func() {
				s.Drop(1)
				if err := s.Put(b.Context(), 1, plain, c); err != nil {
					b.Fatal(err)
				}
			})
		})
		b.Run("get/"+c.String(), func(b *testing.B) {
			if err := s.Put(b.Context(), 1, plain, c); err != nil {
				b.Fatal(err)
			}
			cpu(b, len(plain), func() {
				if err := s.Get(1, dst); err != nil {
					b.Fatal(err)
				}
			})
		})
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}
