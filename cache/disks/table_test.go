package disks

import (
	"bytes"
	"cmp"
	"iter"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"rankfs/cache/ledger"
)

// known is what a table is to say of a slab.
type known struct {
	label
	real   int64
	listed bool
	right  proof
}

// Whatever is done in whatever order, a table says what a map and a list do,
// of numbers that fit into a row and of others.
func TestTable(t *testing.T) {
	series := rapid.Custom(func(r *rapid.T) [16]byte { return [16]byte{rapid.Byte().Draw(r, "series") % 4} })
	ranks := rapid.OneOf(rapid.Uint64Range(0, 2), rapid.SampledFrom([]uint64{math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64}))
	steps := rapid.OneOf(rapid.Uint64Range(0, 1000), rapid.Just[uint64](math.MaxUint64))
	sizes := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.SampledFrom([]int64{math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64}))
	reals := rapid.OneOf(rapid.Map(rapid.Int64Range(0, 10), func(n int64) int64 { return n * block }),
		rapid.SampledFrom([]int64{block + 1, math.MaxUint32 * block, (math.MaxUint32 + 1) * block, math.MaxInt64}))
	keys := rapid.Custom(func(r *rapid.T) Key {
		return Key{Series: series.Draw(r, "series"), Rank: ranks.Draw(r, "rank"), Step: steps.Draw(r, "step")}
	})
	times := rapid.SampledFrom([]unix.Timespec{{}, {Sec: 1 << 30, Nsec: 999999999}, {Sec: -1, Nsec: 1}, {Sec: math.MaxInt64}, {Sec: math.MinInt64, Nsec: 5}})
	rapid.Check(t, func(r *rapid.T) {
		table := newTable()
		model := make(map[Key]*known)
		var order []Key  // of those that are listed, the one used longest ago first
		var untold []Key // of those, since rewind neither returned by next nor touched
		leaveIf := func(gone func(Key) bool) {
			order, untold = slices.DeleteFunc(order, gone), slices.DeleteFunc(untold, gone)
		}
		leave := func(k Key) { leaveIf(func(o Key) bool { return o == k }) }
		insert := func(r *rapid.T, k Key) {
			if model[k] == nil {
				m := &known{label: label{k, sizes.Draw(r, "size"), rapid.Uint64().Draw(r, "sum")}, real: reals.Draw(r, "real")}
				model[k] = m
				table.insert(m.label, m.real)
			}
		}
		// some draws a slab that there is.
		some := func(r *rapid.T, f func(id uint32, m *known)) {
			if len(model) == 0 {
				return
			}
			k := rapid.SampledFrom(slices.SortedFunc(maps.Keys(model), compareKeys)).Draw(r, "slab")
			f(table.Find(k), model[k])
		}
		r.Repeat(map[string]func(*rapid.T){
			"insert": func(r *rapid.T) { insert(r, keys.Draw(r, "key")) },
			"many": func(r *rapid.T) {
				p := series.Draw(r, "series")
				for n := range uint64(rapid.IntRange(0, 2500).Draw(r, "slabs")) {
					k := Key{Series: p, Step: 1<<40 + n}
					if model[k] == nil {
						model[k] = &known{label: label{k, 1, n}, real: block}
						table.insert(model[k].label, block)
					}
				}
			},
			"remove": func(r *rapid.T) {
				some(r, func(id uint32, m *known) {
					table.remove(id)
					delete(model, m.key)
					leave(m.key)
				})
			},
			"remove a series": func(r *rapid.T) {
				p := series.Draw(r, "series")
				for k := range model {
					if k.Series == p {
						table.remove(table.Find(k))
						delete(model, k)
					}
				}
				leaveIf(func(o Key) bool { return o.Series == p })
			},
			"list": func(r *rapid.T) {
				some(r, func(id uint32, m *known) {
					if !m.listed {
						table.list(id)
						m.listed, order = true, append(order, m.key)
					}
				})
			},
			"unlist": func(r *rapid.T) {
				some(r, func(id uint32, m *known) {
					if m.listed {
						table.unlist(id)
						m.listed = false
						leave(m.key)
					}
				})
			},
			"touch": func(r *rapid.T) {
				some(r, func(id uint32, m *known) {
					if m.listed {
						table.touch(id)
						leave(m.key)
						order = append(order, m.key)
					}
				})
			},
			"rewind": func(*rapid.T) {
				table.rewind()
				untold = slices.Clone(order)
			},
			"next": func(r *rapid.T) {
				switch id := table.next(); {
				case len(untold) > 0:
					if id == 0 || table.key(id) != untold[0] {
						r.Fatalf("slab %d is next, not that of %v", id, untold[0])
					}
					untold = untold[1:]
				case id != 0 && !slices.Contains(order, table.key(id)):
					r.Fatalf("slab %d is next, and not listed", id)
				}
			},
			"prove": func(r *rapid.T) {
				some(r, func(id uint32, m *known) {
					m.right = proof{time.Now().Add(time.Duration(rapid.Int64Range(0, 1<<50).Draw(r, "later"))), times.Draw(r, "changed")}
					if rapid.Bool().Draw(r, "none") {
						m.right = proof{}
					}
					table.prove(id, m.right)
					if m.right.changed.Sec > 1<<62 || m.right.changed.Sec < -1<<62 {
						m.right = proof{} // no clock shows that
					}
				})
			},
			"": func(r *rapid.T) {
				if table.Len() != len(model) {
					r.Fatalf("%d slabs, want %d", table.Len(), len(model))
				}
				for k, m := range model {
					id := table.Find(k)
					if id == 0 {
						r.Fatalf("%+v is not there", k)
					}
					got := known{table.label(id), table.real(id), table.is(id, listed), table.proof(id)}
					if !got.right.at.Equal(m.right.at) || got.right.at.Sub(m.right.at) != 0 {
						r.Fatalf("%+v was proven at %v, want %v", k, got.right.at, m.right.at)
					}
					if got.right.at = m.right.at; got != *m {
						r.Fatalf("%+v, want %+v", got, *m)
					}
				}
				if k := keys.Draw(r, "another"); model[k] == nil && table.Find(k) != 0 {
					r.Fatalf("%+v is there", k)
				}
				if got := tableKeys(table, table.oldest()); !slices.Equal(got, order) {
					r.Fatalf("in order of use: %v, want %v", got, order)
				}
				got, want := tableKeys(table, table.listed()), slices.SortedFunc(slices.Values(order), compareKeys)
				if slices.SortFunc(got, compareKeys); !slices.Equal(got, want) {
					r.Fatalf("listed: %v, want %v", got, want)
				}
				named, extents := make(map[[16]byte]bool), 0
				for k, m := range model {
					named[k.Series] = true
					if max(k.Rank, uint64(m.size), uint64(m.real/block)) > math.MaxUint32 || m.real%block != 0 {
						extents++
					}
				}
				if table.series.Len() != len(named) || len(table.wide) != extents {
					r.Fatalf("%d series, want %d; %d extents, want %d", table.series.Len(), len(named), len(table.wide), extents)
				}
			},
		})
	})
}

func tableKeys(t *table, ids iter.Seq[uint32]) (keys []Key) {
	for id := range ids {
		keys = append(keys, t.key(id))
	}
	return keys
}

func compareKeys(a, b Key) int {
	return cmp.Or(bytes.Compare(a.Series[:], b.Series[:]), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Step, b.Step))
}

// What is beside the rows goes when all slabs are gone.
func TestTableShrinks(t *testing.T) {
	table := newTable()
	for range 3 {
		var ids []uint32
		for n := range 3 * ledger.Page {
			id := table.insert(label{key: Key{Step: uint64(n)}, size: 1 << 40}, block)
			table.prove(id, proof{at: time.Now()})
			ids = append(ids, id)
		}
		for _, id := range ids {
			table.remove(id)
		}
		if n := len(table.proofs) + len(table.wide) + table.series.Len() + int(table.End()); n != 1 {
			t.Errorf("%d chunks of proofs, %d extents, %d series, %d rows", len(table.proofs), len(table.wide), table.series.Len(), table.End())
		}
	}
}

// A million slabs take 80 bytes each at most, with all that is known of those
// that were opened.
func TestBytesPerSlab(t *testing.T) {
	const n = 1_000_000
	if size := unsafe.Sizeof(row{}); size != 48 {
		t.Errorf("%d bytes of status", size)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	tier := million(t)
	d := tier.dirs[0]
	told := heap()
	for i := range n {
		s, _ := d.reader.take(scattered(i))
		s.right = proof{time.Now(), unix.NsecToTimespec(int64(i))}
		d.reader.unuse(s)
	}
	proven := heap()
	if d.stats().Slabs != n {
		t.Fatalf("%d slabs", d.stats().Slabs)
	}
	t.Logf("%.1f bytes, %.1f when proven", float64(told-before)/n, float64(proven-before)/n)
	if proven-before > 80*n || told-before > 60*n {
		t.Errorf("%d bytes, %d when proven", told-before, proven-before)
	}
	runtime.KeepAlive(tier)
}

// A directory that is given up as a slab gets its name does not count it.
func TestGivenUpAtPublish(t *testing.T) {
	d := newDirectory(Dir{t.TempDir(), 1 << 30}, Config{Log: slog.New(slog.DiscardHandler), Patience: time.Minute}, &fileSystems{pending: make(map[uint64]*atomic.Int64)})
	if err := d.enter(true); err != nil {
		t.Fatal(err)
	}
	d.budget.Add(4096)
	p := d.slabs.mu.place
	s := &slab{label: label{Key{}, 5, 5}, place: p, real: 4096}
	if !d.slabs.expect(s) || d.slabs.expect(&slab{label: s.label, place: p}) {
		t.Fatal("it is not the only one of its key")
	}
	d.slabs.leave()
	p.Close()
	d.slabs.publish(s, proof{})
	if n := d.stats(); d.reader.has(s.key) || n.Slabs != 0 || n.Used != 0 || len(d.slabs.mu.held) != 0 {
		t.Errorf("%+v, %d held", n, len(d.slabs.mu.held))
	}
}

// A slab that is wrong is counted once, if it stays because its disk refuses to
// remove it, and its proof is gone.
func TestRejectedOnce(t *testing.T) {
	d := newDirectory(Dir{t.TempDir(), 1 << 30}, Config{}, nil)
	d.slabs.mu.place = &place{}
	d.slabs.mu.recall(label{}, 4096, true)
	s, _ := d.reader.take(Key{})
	s.right.at = time.Now()
	d.reader.unuse(s)
	for n := range 3 {
		s, right := d.reader.take(Key{})
		if told := d.slabs.tally(s, errIndex); told != (n == 0) || right.at.IsZero() != (n > 0) {
			t.Errorf("time %d: counted %v, proven at %v", n, told, right.at)
		}
		d.reader.unuse(s)
	}
	if n := d.stats().Damaged; n != 1 {
		t.Errorf("%d slabs damaged", n)
	}
}
