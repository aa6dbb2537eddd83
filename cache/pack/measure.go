package pack

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// samples is the number of blocks of a slab that are measured, evenly spaced.
const samples = 2

// A Measure is the measured effect of a codec on a dataset.
type Measure struct {
	Codec  Codec
	Ratio  float64       // packed bytes for one plain byte
	Pack   time.Duration // processor time for a MiB, with both sums
	Unpack time.Duration // the same
}

// towards moves a measure by a part of the way to another.
func (m Measure) towards(to Measure, weight float64) Measure {
	m.Ratio += weight * (to.Ratio - m.Ratio)
	m.Pack += time.Duration(weight * float64(to.Pack-m.Pack))
	m.Unpack += time.Duration(weight * float64(to.Unpack-m.Unpack))
	return m
}

// A Setting is the use of a dataset, from which the benefit of packing it follows.
type Setting struct {
	Memory  int64         // bytes for the dataset's slabs, plain and packed
	Dataset int64         // bytes of the dataset
	Below   time.Duration // wait for a MiB that is not in memory
	// Uses is the number of times that a slab is unpacked for each time that it is packed:
	// the epochs to come. Zero counts as one.
	Uses float64
}

// unpacked is the wait for a MiB of the dataset, on average, if nothing is
// packed.
func (s Setting) unpacked() time.Duration {
	if s.Dataset <= s.Memory || s.Dataset <= 0 {
		return 0
	}
	return time.Duration(float64(s.Below) * float64(s.Dataset-max(s.Memory, 0)) / float64(s.Dataset))
}

// Wait is the same if slabs are packed as measured.
//
// Let M bytes of memory hold a bytes of a dataset of W plainly and b packed, in
// b*r. A byte of the first is there, one of the second costs u to unpack, and
// others t from below: together b*u + (W-a-b)*t, where a = M - b*r. That is
// linear in b and falls if u < t*(1-r). So either nothing should be packed,
// or as much as it takes to have all of W in memory, or all that memory holds.
func (s Setting) Wait(m Measure) time.Duration {
	w, mem, t := float64(s.Dataset), float64(max(s.Memory, 0)), float64(s.Below)
	u := float64(m.Unpack) + float64(m.Pack)/max(s.Uses, 1)
	if w <= mem || m.Ratio <= 0 || u >= t*(1-m.Ratio) {
		return s.unpacked()
	}
	b := min((w-mem)/(1-m.Ratio), mem/m.Ratio)
	a := max(0, mem-b*m.Ratio)
	return time.Duration((b*u + max(0, w-a-b)*t) / w)
}

// A trial tries codecs on blocks of a slab.
type trial struct {
	codecs     []Codec
	blockBytes int
	clock      func() time.Duration // of the thread that tries
}

// measure tries all codecs on some blocks of a slab.
func (t *trial) measure(blocks [samples][]byte) (all []Measure, err error) {
	p, err := newPress(t.blockBytes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	to, err := mapBytes(pages(t.blockBytes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unmapBytes(to)) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, k := range t.codecs {
		m, err := t.try(p, k, to, blocks)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// try measures one codec.
func (t *trial) try(p *press, k Codec, to []byte, blocks [samples][]byte) (Measure, error) {
	m := Measure{Codec: k}
	var from, became int
	for _, b := range blocks {
		packed, pack, unpack, err := t.round(p, k, to[:len(b)], b)
		if err != nil {
			return m, fmt.Errorf("%v: %w", k, err)
		}
		from, became = from+len(b), became+packed
		m.Pack, m.Unpack = m.Pack+pack, m.Unpack+unpack
	}
	perMiB := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (1 << 20) / float64(from)) }
	m.Ratio, m.Pack, m.Unpack = float64(became)/float64(from), perMiB(m.Pack), perMiB(m.Unpack)
	return m, nil
}

// copied are copies of the blocks of a slab that are tried, until they are freed.
func (t *trial) copied(plain []byte) (blocks [samples][]byte, free func() error, err error) {
	room, err := mapBytes(pages(samples * t.blockBytes))
	if err != nil {
		return blocks, nil, err
	}
	left := room
	for i := range blocks {
		n := copy(left, t.sample(plain, i))
		blocks[i], left = left[:n], left[n:]
	}
	return blocks, func() error { return unmapBytes(room) }, nil
}

// sample is one of the blocks that are tried, which are spread over the slab.
func (t *trial) sample(plain []byte, i int) []byte {
	size := min(len(plain), t.blockBytes)
	at := (len(plain) - size) * (2*i + 1) / (2 * samples)
	at -= at % t.blockBytes // numbers begin where they do when it is packed
	return plain[at:][:size]
}

// round packs and unpacks a block, twice, and returns the better times: the
// first brings tables and pages.
func (t *trial) round(p *press, k Codec, to, plain []byte) (packed int, pack, unpack time.Duration, err error) {
	pack, unpack = math.MaxInt64, math.MaxInt64
	for range 2 {
		start := t.clock()
		b, as, err := p.pack(plain, k)
		if err != nil {
			return 0, 0, 0, err
		}
		sums := xxhash.Sum64(b) ^ xxhash.Sum64(plain)
		between := t.clock()
		same := xxhash.Sum64(b)
		if err := p.unpack(to, b, as); err != nil {
			return 0, 0, 0, err
		}
		same ^= xxhash.Sum64(to)
		end := t.clock()
		if same != sums {
			return 0, 0, 0, fmt.Errorf("unpacked to other bytes: %w", meta.ErrCorrupt)
		}
		packed, pack, unpack = len(b), min(pack, between-start), min(unpack, end-between)
	}
	return packed, pack, unpack, nil
}
