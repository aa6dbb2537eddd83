package cache

import (
	"iter"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/ledger"
	"rankfs/meta"
)

// A seriesPair is the series in the keys of batches, and the series that they are read by.
type seriesPair struct{ keys, series [16]byte }

// A named is a batch in one of its forms.
type named struct {
	key    Key
	packed bool
}

// An idleTable has the batches that are ready and open nowhere: found by their keys,
// and in the order of their eviction. There may be very many, so the table keeps of
// each no more than a status of 48 bytes and its place in the order; a batch in a file
// of its own, of which there are few, has an opened too.
//
// A batch has one status for each form that is idle, under one number as long as it is
// here. A status may round the times that were put. The cache's lock guards the table.
type idleTable struct {
	ledger *ledger.Ledger[named, status]
	heaps  heaps // by worth
	pairs  ledger.Names[seriesPair]
	series []*Series // by the number of the pair
	bytes  []int64   // of memory, by that too
	opened []slabFiles
	unused []uint32 // of the opened
	wide   map[uint32]extent
	files  int // so many batches have a file in memory, open
	hand   int // among opened, where one of them was found last
	packed int // so many batches are
	began  time.Time
}

// slabFiles are the files of a batch that has a file of its own.
type slabFiles struct {
	ram     *ramFile
	file    *disks.Slab
	backing int32
	id      uint32 // of the batch
}

func newIdleTable(began time.Time) *idleTable {
	s := &idleTable{wide: make(map[uint32]extent), began: began}
	s.ledger = ledger.New(s.name, func(r *status) *uint32 { return &r.next })
	slot := func(id uint32) *uint32 { return &s.ledger.At(id).slot }
	for i := range s.heaps {
		s.heaps[i].slot = slot
	}
	return s
}

func (s *idleTable) name(id uint32) named {
	r := s.ledger.At(id)
	k := Key{Series: s.pairs.Of(r.pair).keys, Rank: uint64(r.rank), Step: r.step}
	if r.used&wideFlag != 0 {
		k.Rank = s.wide[id].rank
	}
	return named{k, r.used&packedFlag != 0}
}

// find returns the number of a batch in a form, or 0.
func (s *idleTable) find(k Key, packed bool) uint32 {
	if packed && s.packed == 0 {
		return 0
	}
	return s.ledger.Find(named{k, packed})
}

// put adds a batch in a form that is not here yet.
func (s *idleTable) put(b batch, at heapPlace) {
	r := newStatus(b, s.began)
	r.pair = s.pair(b)
	s.bytes[r.pair] += b.memory()
	switch {
	case b.packed:
		s.packed++
	case !b.inSlot:
		r.bytes = s.open(slabFiles{ram: b.ram, file: b.file, backing: b.backing})
	}
	id := s.ledger.Insert(named{b.key, b.packed}, r)
	if id == 0 {
		panic("cache: more batches than numbers for them") // there are fewer pages
	}
	if r.used&wideFlag != 0 {
		s.wide[id] = extent{b.key.Rank, b.size}
	}
	if r.used&(packedFlag|slotFlag) == 0 {
		o := &s.opened[r.bytes]
		o.id = id
		if o.idle() {
			s.files++
		}
	}
	s.ledger.At(id).setHeap(at.heap)
	s.heaps[at.heap].push(id, at.worth)
}

// pair is the number of the series of a batch.
func (s *idleTable) pair(b batch) uint32 {
	n := s.pairs.Take(seriesPair{b.key.Series, b.series.ID})
	for len(s.series) <= int(n) {
		s.series, s.bytes = append(s.series, nil), append(s.bytes, 0)
	}
	s.series[n] = b.series
	return n
}

func (s *idleTable) open(o slabFiles) uint32 {
	if n := len(s.unused) - 1; n >= 0 {
		at := s.unused[n]
		s.unused, s.opened[at] = s.unused[:n], o
		return at
	}
	s.opened = append(s.opened, o)
	return uint32(len(s.opened) - 1)
}

// at is the batch of a number.
func (s *idleTable) at(id uint32) batch {
	r := s.ledger.At(id)
	is := func(flag uint64) bool { return r.used&flag != 0 }
	k := batch{
		key: s.name(id).key, series: s.series[r.pair],
		form:    form{packed: is(packedFlag), inSlot: is(slotFlag), size: int64(r.size), real: int64(r.pages) * meta.WholePages(1), dense: is(denseFlag)},
		history: history{opened: is(openedFlag), byHand: is(byHandFlag), gap: r.gap.duration(), took: r.took.duration()},
	}
	if used := r.used >> flagBits; used > 0 {
		k.last = s.began.Add(time.Duration(used) * time.Microsecond)
	}
	if is(wideFlag) {
		k.size = s.wide[id].size
	}
	if k.packed || k.inSlot {
		k.number = r.bytes
	} else {
		o := s.opened[r.bytes]
		k.ram, k.file, k.backing = o.ram, o.file, o.backing
	}
	return k
}

// change notes another history of a batch, and its place.
func (s *idleTable) change(id uint32, k batch, at heapPlace) {
	s.ledger.At(id).remember(k, s.began)
	s.rank(id, at)
}

// rank gives a batch another place in the heaps.
func (s *idleTable) rank(id uint32, at heapPlace) {
	r := s.ledger.At(id)
	if r.heap() == at.heap {
		s.heaps[at.heap].fix(r.slot, at.worth)
		return
	}
	s.heaps[r.heap()].remove(r.slot)
	r.setHeap(at.heap)
	s.heaps[at.heap].push(id, at.worth)
}

// take takes a batch away.
func (s *idleTable) take(id uint32) batch {
	k, r := s.at(id), s.ledger.At(id)
	s.heaps[r.heap()].remove(r.slot)
	switch {
	case k.packed:
		s.packed--
	case !k.inSlot:
		if o := &s.opened[r.bytes]; o.idle() {
			s.files--
		}
		s.opened[r.bytes] = slabFiles{}
		s.unused = append(s.unused, r.bytes)
	}
	r.set(thereFlag, false)
	v := r.pair
	s.bytes[v] -= k.memory()
	s.ledger.Remove(id)
	delete(s.wide, id)
	if s.pairs.Give(v) {
		s.series[v] = nil
	}
	if s.ledger.Len() == 0 {
		s.opened, s.unused, s.hand = nil, nil, 0
	}
	return k
}

// file is the slab on NVMe of a batch, if it has one open.
func (s *idleTable) file(id uint32) *disks.Slab {
	r := s.ledger.At(id)
	if r.used&(packedFlag|slotFlag) != 0 {
		return nil
	}
	return s.opened[r.bytes].file
}

// inOrder are the batches, those that are to go first first, as far as that is
// known: of the heaps what is worth least is near the begin. They must not change
// meanwhile.
func (s *idleTable) inOrder() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		spent := &s.heaps[spentHeap]
		for at := range spent.count {
			if !yield(spent.id(at)) {
				return
			}
		}
		s.heaps.all()(yield)
	}
}

// idle reports whether a batch has a file in memory that is open.
func (o *slabFiles) idle() bool { return o.ram != nil && o.ram.fd >= 0 }

// nextFile is a batch that has such a file: each in turn, as long as they are there; 0 if
// there is none.
func (s *idleTable) nextFile() uint32 {
	if s.files == 0 {
		return 0
	}
	for range s.opened {
		s.hand = (s.hand + 1) % len(s.opened)
		if o := &s.opened[s.hand]; o.idle() {
			return o.id
		}
	}
	return 0
}

// inSlot reports whether a batch is in memory without a file of its own.
func (s *idleTable) inSlot(id uint32) bool { return s.ledger.At(id).used&slotFlag != 0 }

// has reports whether a number is that of a batch.
func (s *idleTable) has(id uint32) bool {
	return id < s.ledger.End() && s.ledger.At(id).used&thereFlag != 0
}

// all are the batches, of which those that were yielded may be taken meanwhile.
func (s *idleTable) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := uint32(1); id < s.ledger.End(); id++ {
			if s.has(id) && !yield(id) {
				return
			}
		}
	}
}
