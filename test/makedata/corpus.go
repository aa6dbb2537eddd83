package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// A Corpus is N records, each a pure function of the seed and its index.
type Corpus struct {
	N         int
	Size      int
	MaxSize   int
	Side      int
	Seed      uint64
	Scattered bool // insertion order is not key order
	Skew      int  // keys of 99 of 100 records have a hash that is 0 modulo this

	// Key and Value append record i to dst.
	Key   func(dst []byte, i int) []byte
	Value func(dst []byte, i int) []byte
}

// mix is the finalizer of splitmix64. The C programs in test/mpi have the same.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const golden = 0x9e3779b97f4a7c15

// word is the j-th word of record i.
func (c *Corpus) word(i, j int) uint64 {
	return mix(mix(c.Seed^uint64(i)*golden) + uint64(j)*golden)
}

// between is a number from low to high, chosen by record i.
func (c *Corpus) between(i, low, high int) int {
	if high <= low {
		return low
	}
	return low + int(c.word(i, -1)%uint64(high-low+1))
}

// fill appends size bytes of record i: little-endian words from the j-th on,
// the last one cut short.
func (c *Corpus) fill(dst []byte, i, j, size int) []byte {
	h := mix(c.Seed ^ uint64(i)*golden)
	for ; size >= 8; size -= 8 {
		dst = binary.LittleEndian.AppendUint64(dst, mix(h+uint64(j)*golden))
		j++
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], mix(h+uint64(j)*golden))
	return append(dst, last[:size]...)
}

// words are records whose first eight bytes are the index and whose rest
// follows from it, so that a reader can verify one alone.
func (c Corpus) words() Corpus {
	c.Key = func(dst []byte, i int) []byte { return fmt.Appendf(dst, "%010d", i) }
	c.Value = func(dst []byte, i int) []byte {
		size := c.between(i, c.Size, c.MaxSize)
		if size < 8 {
			return c.fill(dst, i, 1, size)
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(i))
		return c.fill(dst, i, 1, size-8)
	}
	return c
}

// lines are words of letters, from half to one and a half times Size long.
// The newline is part of the record.
func (c Corpus) lines() Corpus {
	c.Key = func(dst []byte, i int) []byte { return dst }
	c.Value = func(dst []byte, i int) []byte {
		start, size := len(dst), c.between(i, c.Size/2, c.Size*3/2)
		dst = fmt.Appendf(dst, "%d ", i)
		text := len(dst)
		dst = c.fill(dst, i, 1, max(0, size-(text-start)-1))
		spell(dst[text:], "abcdefghijklmnopqrstuvwxyz      ")
		return append(dst, '\n')
	}
	return c
}

// spell makes letters of bytes, of 32 that there are.
func spell(b []byte, letters string) {
	for i, one := range b {
		b[i] = letters[one%32]
	}
}

const symbols = "abcdefghijklmnopqrstuvwxyz012345"

// keyBytes are those of a key of keyed: of 2^60 keys hardly two are the same.
const keyBytes = 12

// keyed are lines of Size bytes: a key in no order, a tab, and what belongs to it.
func (c Corpus) keyed() Corpus {
	c.Key = func(dst []byte, i int) []byte { return dst }
	c.Value = func(dst []byte, i int) []byte {
		start := len(dst)
		for try := 0; ; try++ {
			dst = c.fill(dst[:start], i, 2*try, keyBytes)
			spell(dst[start:], symbols)
			if c.Skew == 0 || i%100 == 0 || xxhash.Sum64(dst[start:])%uint64(c.Skew) == 0 {
				break
			}
		}
		dst = append(dst, '\t')
		rest := len(dst)
		dst = c.fill(dst, i, -c.Size, max(0, c.Size-keyBytes-2))
		spell(dst[rest:], symbols)
		return append(dst, '\n')
	}
	return c
}

// vocabulary is how many words text has, of which the n-th comes about 1/n as often as the
// first: in bits.
const vocabulary = 20

// text are lines of words, Size bytes or a word more.
func (c Corpus) text() Corpus {
	c.Key = func(dst []byte, i int) []byte { return dst }
	c.Value = func(dst []byte, i int) []byte {
		start := len(dst)
		for j := 0; len(dst)-start < c.Size; j++ {
			random := float64(c.word(i, j)>>11) / (1 << 53)
			n := uint64(math.Exp2(random * vocabulary))
			h := mix(n * golden)
			for range 1 + bits.Len64(n)/3 + int(h>>60%5) { // frequent words are short
				dst = append(dst, 'a'+byte(h%26))
				h /= 26
			}
			dst = append(dst, ' ')
		}
		return append(dst[:max(start, len(dst)-1)], '\n')
	}
	return c
}

// Of a point the first number is its class, the others are features: the class's
// own, whatever the seed, with noise on it. Classes take turns.
const (
	pointNumbers = 64
	pointClasses = 8
)

// points are 32-bit floats that are small integers, so that sums of them are exact.
func (c Corpus) points() Corpus {
	c.Key = func(dst []byte, _ int) []byte { return dst }
	c.Value = func(dst []byte, i int) []byte {
		class := i % pointClasses
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(class)))
		for j := 1; j < pointNumbers; j++ {
			own := mix(uint64(class*pointNumbers+j)*golden) % 16
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(own+c.word(i, j)%16)))
		}
		return dst
	}
	return c
}

// files are named so that their paths sort in the order of the index.
func (c Corpus) files() Corpus {
	size := c.Size
	c.Size, c.MaxSize = size/2, size*3/2
	c = c.words()
	c.Key = func(dst []byte, i int) []byte { return fmt.Appendf(dst, "%04d/%08d.bin", i/1000, i) }
	return c
}

// datum are images as Caffe's convert_imageset stores them: a slope of colour
// with noise on it, planar R, G, B, in a protobuf written by hand.
func (c Corpus) datum() Corpus {
	c.Key = func(dst []byte, i int) []byte {
		return fmt.Appendf(dst, "%08d_%03d/image-%d.png", i, c.label(i), i)
	}
	c.Value = func(dst []byte, i int) []byte {
		side := uint64(c.Side)
		dst = append(dst, 0x08, 3) // channels
		dst = binary.AppendUvarint(append(dst, 0x10), side)
		dst = binary.AppendUvarint(append(dst, 0x18), side)
		dst = binary.AppendUvarint(append(dst, 0x22), 3*side*side)
		dst = c.pixels(dst, i)
		return binary.AppendUvarint(append(dst, 0x28), uint64(c.label(i)))
	}
	return c
}

func (c *Corpus) label(i int) int { return int(c.word(i, -2) % 1000) }

func (c *Corpus) pixels(dst []byte, i int) []byte {
	start := len(dst)
	dst = c.fill(dst, i, 0, 3*c.Side*c.Side)
	p, slope := dst[start:], c.word(i, -3)
	for plane := range 3 {
		for y := range c.Side {
			row := p[(plane*c.Side+y)*c.Side:][:c.Side]
			shade := byte(slope>>(8*plane)) + byte(y*128/c.Side)
			for x := range row {
				row[x] = shade + byte(x) + row[x]&15
			}
		}
	}
	return dst
}
