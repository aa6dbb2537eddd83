package cache

import (
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"rankfs/cache/pack"
	"rankfs/meta"
)

// numbered are series that say no more than which they are.
var numbered = [3]*Series{{ID: [16]byte{15: 0}}, {ID: [16]byte{15: 1}}, {ID: [16]byte{15: 2}}}

// Whatever is done in whatever order, an idle table says what a map and a list do.
func TestIdleTable(t *testing.T) {
	keys := rapid.Custom(func(r *rapid.T) named {
		return named{Key{
			Series: [16]byte{rapid.Byte().Draw(r, "series") % 3},
			Rank:   rapid.SampledFrom([]uint64{0, 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64}).Draw(r, "rank"),
			Step:   rapid.SampledFrom([]uint64{0, 1, 2, 3, math.MaxUint64}).Draw(r, "step"),
		}, rapid.Bool().Draw(r, "packed")}
	})
	began := time.Now().Add(-time.Hour)
	times := rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(1000, 1<<50))
	histories := rapid.Custom(func(r *rapid.T) history {
		h := history{
			opened: rapid.Bool().Draw(r, "opened"), byHand: rapid.Bool().Draw(r, "by hand"),
			gap:  shortTimeOf(time.Duration(times.Draw(r, "gap"))).duration(),
			took: shortTimeOf(time.Duration(times.Draw(r, "took"))).duration(),
		}
		if rapid.Bool().Draw(r, "used") {
			h.last = began.Add(time.Duration(rapid.Int64Range(1, 1<<40).Draw(r, "last")) * time.Microsecond)
		}
		return h
	})
	worths := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 5))
	places := rapid.Custom(func(r *rapid.T) heapPlace {
		return heapPlace{rapid.SampledFrom([]uint8{0, 1, spentHeap}).Draw(r, "heap"), worths.Draw(r, "worth")}
	})
	type model struct {
		batch
		heapPlace
	}
	rapid.Check(t, func(r *rapid.T) {
		s, have := newIdleTable(began), make(map[named]*model)
		some := func(r *rapid.T, f func(id uint32, n named, m *model)) {
			if len(have) > 0 {
				all := slices.SortedFunc(maps.Keys(have), func(a, b named) int { return int(s.find(a.key, a.packed)) - int(s.find(b.key, b.packed)) })
				n := rapid.SampledFrom(all).Draw(r, "batch")
				f(s.find(n.key, n.packed), n, have[n])
			}
		}
		put := func(r *rapid.T, n named) {
			if have[n] != nil {
				return
			}
			m := &model{heapPlace: places.Draw(r, "place")}
			m.key, m.series, m.history = n.key, rapid.SampledFrom(numbered[:]).Draw(r, "whole"), histories.Draw(r, "history")
			m.size = rapid.SampledFrom([]int64{0, 1, math.MaxUint32, math.MaxUint32 + 1, 1 << 50}).Draw(r, "size")
			m.dense = rapid.Bool().Draw(r, "dense")
			if m.packed = n.packed; m.packed {
				m.number, m.real = rapid.Uint32().Draw(r, "number"), meta.WholePages(rapid.Int64Range(0, 1<<40).Draw(r, "real"))
			} else {
				if m.inSlot = rapid.Bool().Draw(r, "in slot"); m.inSlot {
					m.number = rapid.Uint32().Draw(r, "number")
				} else {
					m.ram, m.backing = &ramFile{fd: rapid.IntRange(-1, 1).Draw(r, "descriptor")}, rapid.Int32().Draw(r, "backing")
				}
			}
			have[n] = m
			s.put(m.batch, m.heapPlace)
		}
		r.Repeat(map[string]func(*rapid.T){
			"put": func(r *rapid.T) { put(r, keys.Draw(r, "key")) },
			"many": func(r *rapid.T) {
				for n := range uint64(rapid.IntRange(0, 30).Draw(r, "batches")) {
					put(r, named{Key{Step: 100 + n}, n%3 == 0})
				}
			},
			"take": func(r *rapid.T) {
				some(r, func(id uint32, n named, m *model) {
					if got := s.take(id); got != m.batch {
						r.Fatalf("took %+v, want %+v", got, m.batch)
					}
					delete(have, n)
				})
			},
			"change": func(r *rapid.T) {
				some(r, func(id uint32, _ named, m *model) {
					m.history, m.heapPlace = histories.Draw(r, "history"), places.Draw(r, "place")
					s.change(id, m.batch, m.heapPlace)
				})
			},
			"reorder": func(r *rapid.T) {
				for _, m := range have {
					m.worth, m.heap = -m.worth, maxHeaps-1-m.heap
				}
				for id := range s.all() {
					s.rank(id, have[s.name(id)].heapPlace)
				}
			},
			"": func(r *rapid.T) {
				least, spent, packed, files := make(map[uint8]float64), 0, 0, 0
				for n, m := range have {
					if n.packed {
						packed++
					}
					id := s.find(n.key, n.packed)
					if id == 0 || !s.has(id) || s.at(id) != m.batch {
						r.Fatalf("%+v: number %d, want %+v", n, id, m)
					}
					if m.ram != nil && m.ram.fd >= 0 {
						files++
					}
					if m.heap == spentHeap {
						spent++
					}
					if worth, is := least[m.heap]; !is || m.worth < worth {
						least[m.heap] = m.worth
					}
					if at := s.ledger.At(id).slot; s.heaps[m.heap].id(at) != id || s.heaps[m.heap].worth(at) != m.worth {
						r.Fatalf("%+v is not at its place in the order", n)
					}
				}
				for range 2 {
					if id := s.nextFile(); (id == 0) != (files == 0) || id != 0 && have[s.name(id)].ram.fd < 0 {
						r.Fatalf("of %d files that are open %d is the next", files, id)
					}
				}
				if n := keys.Draw(r, "another"); have[n] == nil && s.find(n.key, n.packed) != 0 {
					r.Fatalf("%+v is there", n)
				}
				if s.heaps.count() != len(have) || s.packed != packed || s.ledger.Len() != len(have) {
					r.Fatalf("%d in order, want %d; %d packed, want %d; %d batches, want %d", s.heaps.count(), len(have), s.packed, packed, s.ledger.Len(), len(have))
				}
				for heap, want := range least {
					if _, worth := s.heaps[heap].least(); worth != want {
						r.Fatalf("%v is the least worth in heap %d, want %v", worth, heap, want)
					}
				}
				all := make(map[named]bool)
				for id := range s.inOrder() {
					all[s.name(id)] = true
					if n := s.name(id); (have[n].heap == spentHeap) != (len(all) <= spent) {
						r.Fatalf("%+v is number %d in order, where %d are spent", n, len(all), spent)
					}
				}
				if len(all) != len(have) || len(slices.Collect(s.all())) != len(have) {
					r.Fatalf("%d batches in order, want %d", len(all), len(have))
				}
				if len(have) == 0 && (len(s.opened)+len(s.unused)+len(s.wide)+s.files+s.pairs.Len() > 0 || slices.ContainsFunc(s.series, func(p *Series) bool { return p != nil })) {
					r.Fatalf("something is left: %+v", s)
				}
			},
		})
	})
}

// A brief time is off by half of a hundredth at most, and no more if it is noted
// again.
func TestBrief(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(1000, math.MaxInt64/2)).Draw(t, "time"))
		got := shortTimeOf(d).duration()
		if off := (got - d).Abs(); off > d/200 || (d == 0) != (got == 0) || shortTimeOf(got).duration() != got {
			t.Errorf("%v became %v, then %v", d, got, shortTimeOf(got).duration())
		}
	})
}

// A packed batch takes 48 bytes of status, and 36 more at most to be found, to be
// in the order of worth, and for where its bytes are; a small one in memory no more.
func TestBytesPerBatch(t *testing.T) {
	if size := unsafe.Sizeof(status{}); size != 48 {
		t.Errorf("%d bytes of status", size)
	}
	const n, slabs = 1_000_000, 50_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	store, err := pack.New(pack.Config{Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	plain, codec := make([]byte, 64<<10), pack.Codec{Algorithm: pack.S2}
	before := heap()
	for range slabs {
		if _, _, err := store.Put(t.Context(), pack.Name{}, plain, codec); err != nil {
			t.Fatal(err)
		}
	}
	each := float64(heap()-before) / slabs
	before = heap()
	s := newIdleTable(time.Now())
	for i := range uint64(n) {
		s.put(batch{key: Key{Rank: i % 8, Step: i / 8}, series: numbered[0], form: form{packed: i%2 == 0, inSlot: i%2 == 1, size: 64 << 10, real: 4096, number: uint32(i)}}, heapPlace{worth: rand.Float64()})
	}
	each += float64(heap()-before) / n
	t.Logf("%.1f bytes", each)
	if each > 48+36 {
		t.Errorf("%.1f bytes", each)
	}
	runtime.KeepAlive(s)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// count is how many batches are in the heaps.
func (l *heaps) count() (n int) {
	for i := range l {
		n += int(l[i].count)
	}
	return n
}
