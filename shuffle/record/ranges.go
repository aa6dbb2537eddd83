package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"rankfs/meta"
)

// The ranges of keys that are parts are known once all maps are there. Until then a map is
// sorted as a whole, and cut into slices of about one size. After them it has its samples:
// the keys with which slices begin. Those of all maps together say where parts begin, and
// those of one map which of its slices has something of a part.

// A sample is the length of a key, and as much of it as it has room for.
const (
	sampleBytes = 2 + sampleKey
	noSample    = 1<<16 - 1 // no record comes there
)

// putSample puts a sample of a key.
func putSample(b, key []byte) {
	binary.LittleEndian.PutUint16(b, uint16(min(len(key), sampleKey)))
	copy(b[2:sampleBytes], key)
}

// Samples are the samples of one map.
type Samples []byte

func (all Samples) slices() int { return len(all) / sampleBytes }

// key is the key with which a slice begins, as much of it as there is; none if no record
// comes there. One that may go on is not whole.
func (all Samples) key(slice int) (key []byte, some, isWhole bool) {
	b := all[slice*sampleBytes:]
	n := int(binary.LittleEndian.Uint16(b))
	if n > sampleKey {
		return nil, false, true
	}
	return b[2 : 2+n], true, n < sampleKey
}

// SamplesBytes is the number of bytes of the samples of a map of so many slices.
func SamplesBytes(slices uint64) int64 { return int64(slices * sampleBytes) }

// maxSamples bounds the samples that are kept of all maps; or twice as many.
const maxSamples = 1 << 18

// A Sampler keeps some samples of each map. Those of all say where parts begin.
type Sampler struct {
	spec   Spec
	stride int    // of so many one is kept
	room   []byte // for keys
	all    []sample
	total  uint64 // bytes that they stand for
}

// A sample is a key, with the bytes of the records that it stands for.
type sample struct {
	key    []byte
	prefix uint64
	bytes  uint64
}

// Sampler is one for so many maps, which has no samples yet. Their keys are kept in memory
// that it is given: 32 MiB at most.
func (s Spec) Sampler(maps int, slices uint64, memory func(bytes int64) ([]byte, error)) (*Sampler, error) {
	stride := 1 + (maps*int(slices)-1)/maxSamples
	each := (int(slices) + stride - 1) / stride
	room, err := memory(int64(maps * each * sampleKey))
	return &Sampler{spec: s, stride: stride, room: room, all: make([]sample, 0, maps*each)}, err
}

// Add takes the samples of a map, of which so many bytes are records.
func (p *Sampler) Add(number int, m Samples, size int64) {
	n := m.slices()
	for slice := number % p.stride; slice < n; slice += p.stride { // not the first of each map, which are its least keys
		key, some, _ := m.key(slice)
		if !some {
			continue
		}
		kept := p.room[:copy(p.room, key)]
		p.room = p.room[len(kept):]
		bytes := uint64(size)/uint64(n)*uint64(p.stride) + 1
		p.all = append(p.all, sample{kept, p.spec.prefix(kept), bytes})
		p.total += bytes
	}
}

// Bounds are the keys with which all parts begin but the first.
func (p *Sampler) Bounds(parts uint64) (bounds [][]byte) {
	slices.SortFunc(p.all, func(a, b sample) int { // those of one key, too: another sort may have them otherwise
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), p.spec.compare(a.key, b.key), cmp.Compare(a.bytes, b.bytes))
	})
	at := uint64(0)
	for _, one := range p.all {
		for uint64(len(bounds)) < parts-1 && at >= (uint64(len(bounds))+1)*(p.total/parts+1) {
			bounds = append(bounds, bytes.Clone(one.key))
		}
		at += one.bytes
	}
	return bounds
}

// A Range is the keys of a part: from From on, and before To. Without From they begin at the
// first key there is, without To they end with the last.
type Range struct{ From, To []byte }

// RangeOf is the range of a part. There may be fewer bounds than parts: the last are empty.
func RangeOf(bounds [][]byte, part uint64) (r Range, some bool) {
	n := uint64(len(bounds))
	if part > n {
		return r, false
	}
	if part > 0 {
		r.From = bounds[part-1]
	}
	if part < n {
		r.To = bounds[part]
	}
	return r, true
}

// A Span is the share of a range in a map: the slices that may have records of it, First and those
// after it before End. Of these so many, at both ends, the range may cut.
type Span struct{ First, End, CutFrom, CutTo uint16 }

// Cuts reports at which of its ends the range may cut a slice.
func (s Span) Cuts(slice uint16) (from, to bool) {
	return slice < s.First+s.CutFrom, slice >= s.End-s.CutTo
}

// Spans are the shares of so many parts in a map, from one on, divided by these bounds. A map has
// fewer slices than a Span can count.
func (s Spec) Spans(m Samples, bounds [][]byte, part, parts uint64) (all []Span) {
	at := 0
	for end := part + parts; part < end; part++ {
		var is Span
		if r, some := RangeOf(bounds, part); some {
			from, to := s.slicesOf(m, r, at)
			at, is.First, is.End = from, uint16(from), uint16(to)
			for slice := from; slice < to && s.beginsBefore(m, slice, r.From); slice++ {
				is.CutFrom++
			}
			for slice := to - 1; slice >= from && r.To != nil && !s.endsBefore(m, slice, r.To); slice-- {
				is.CutTo++
			}
		}
		all = append(all, is)
	}
	return all
}

// slicesOf are the numbers of the slices of a range, none of which comes before one.
func (s *Spec) slicesOf(m Samples, r Range, from int) (first, end int) {
	n := m.slices()
	for from < n && r.From != nil && s.endsBefore(m, from, r.From) {
		from++
	}
	for end = from; end < n; end++ {
		if key, some, _ := m.key(end); !some || r.To != nil && s.order(key, r.To) >= 0 {
			break
		}
	}
	return from, end
}

// endsBefore reports whether all records of a slice are known to come before a key.
func (s *Spec) endsBefore(m Samples, slice int, bound []byte) bool {
	if slice+1 == m.slices() {
		return false
	}
	key, some, isWhole := m.key(slice + 1)
	return some && s.order(key, bound) < 0 && (isWhole || !bytes.HasPrefix(bound, key))
}

// beginsBefore reports whether a slice may have records that come before a key.
func (s *Spec) beginsBefore(m Samples, slice int, bound []byte) bool {
	key, some, _ := m.key(slice)
	return bound != nil && !(some && s.order(key, bound) >= 0)
}

// Cut has the records of a range among those of some slices, which stand one after the other.
func (s Spec) Cut(b []byte, r Range) ([]byte, error) {
	if r.From != nil {
		n, err := s.reach(b, r.From)
		if err != nil {
			return nil, err
		}
		b = b[n:]
	}
	if r.To != nil {
		n, err := s.reach(b, r.To)
		if err != nil {
			return nil, err
		}
		b = b[:n]
	}
	return b, nil
}

// reach is where in some slices the records begin that do not come before a key.
func (s *Spec) reach(b, key []byte) (int, error) {
	before, from := 0, len(b) // records up to here are known to come before it, and those from there on not to
	for before < from {
		at := before + s.begin(b[before:from])
		r, err := s.first(b[at:])
		switch {
		case err != nil:
			return 0, meta.Worded(meta.ErrCorrupt, "slice of a map: %w", err)
		case s.order(s.key(r), key) < 0:
			before = at + len(r)
		default:
			from = at
		}
	}
	return from, nil
}

// begin is where one of some records begins, and if that can be seen the one in the middle.
func (s *Spec) begin(b []byte) int {
	switch middle := len(b) / 2; s.Kind {
	case meta.Lines:
		return bytes.LastIndexByte(b[:middle], '\n') + 1
	case meta.Fixed:
		return middle / int(s.Size) * int(s.Size)
	}
	return 0
}
