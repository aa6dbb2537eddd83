package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

type row struct{ key, value, next uint32 }

func fresh() *Ledger[uint32, row] {
	var l *Ledger[uint32, row]
	l = New(func(id uint32) uint32 { return l.At(id).key }, func(r *row) *uint32 { return &r.next })
	return l
}

// Whatever is done in whatever order, a ledger says what a map does, by numbers
// that stay.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l, ids, values := fresh(), make(map[uint32]uint32), make(map[uint32]uint32)
		keys := rapid.Uint32Range(0, 200)
		r.Repeat(map[string]func(*rapid.T){
			"insert": func(r *rapid.T) {
				k := keys.Draw(r, "key")
				if ids[k] == 0 {
					values[k] = rapid.Uint32().Draw(r, "value")
					ids[k] = l.Insert(k, row{key: k, value: values[k]})
				}
			},
			"many": func(r *rapid.T) {
				for k := range uint32(rapid.IntRange(0, 3*Page).Draw(r, "things")) {
					if k += 1000; ids[k] == 0 {
						values[k], ids[k] = k, l.Insert(k, row{key: k, value: k})
					}
				}
			},
			"remove": func(r *rapid.T) {
				k := keys.Draw(r, "key")
				if id := ids[k]; id != 0 {
					l.Remove(id)
					delete(ids, k)
				}
			},
			"remove many": func(r *rapid.T) {
				for k, id := range ids {
					if k >= 1000 {
						l.Remove(id)
						delete(ids, k)
					}
				}
			},
			"change": func(r *rapid.T) {
				k := keys.Draw(r, "key")
				if id := ids[k]; id != 0 {
					values[k]++
					l.At(id).value++
				}
			},
			"spread": func(r *rapid.T) { l.Spread(rapid.IntRange(0, 5000).Draw(r, "things")) },
			"": func(r *rapid.T) {
				if l.Len() != len(ids) {
					r.Fatalf("%d things, want %d", l.Len(), len(ids))
				}
				numbers := make(map[uint32]bool)
				for k, id := range ids {
					if numbers[id] || id == 0 || id >= l.End() {
						r.Fatalf("number %d", id)
					}
					numbers[id] = true
					if at := l.At(id); l.Find(k) != id || at.key != k || at.value != values[k] {
						r.Fatalf("key %d: found %d, want %d; %+v, want %d", k, l.Find(k), id, *at, values[k])
					}
				}
				if k := keys.Draw(r, "another"); ids[k] == 0 && l.Find(k) != 0 {
					r.Fatalf("%d is there", k)
				}
			},
		})
	})
}

// Memory is used again, and given back when all things are gone.
func TestShrinks(t *testing.T) {
	l := fresh()
	for range 3 {
		for k := range uint32(10 * Page) {
			l.Insert(k, row{key: k})
		}
		for k := range uint32(5 * Page) {
			l.Remove(l.Find(k))
		}
		for k := range uint32(5 * Page) {
			l.Insert(1<<31+k, row{key: 1<<31 + k})
		}
		if n := len(l.pages); n != 11 {
			t.Errorf("%d pages", n)
		}
		for id := range uint32(10 * Page) {
			l.Remove(id + 1)
		}
		if n := len(l.pages) + len(l.heads); n != 2 || l.Len() != 0 {
			t.Errorf("%d pages, of %d things", n, l.Len())
		}
	}
}

// A name has one number for as long as it is in use, and no other one has it.
func TestNames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var p Names[string]
		uses, numbers := make(map[string]int), make(map[string]uint32)
		names := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
		r.Repeat(map[string]func(*rapid.T){
			"take": func(r *rapid.T) {
				name := names.Draw(r, "name")
				n := p.Take(name)
				if uses[name] > 0 && numbers[name] != n {
					r.Fatalf("%q is %d, was %d", name, n, numbers[name])
				}
				numbers[name] = n
				uses[name]++
			},
			"give": func(r *rapid.T) {
				name := names.Draw(r, "name")
				if uses[name] > 0 {
					uses[name]--
					if last := p.Give(numbers[name]); last != (uses[name] == 0) {
						r.Fatalf("%q is given for the last time: %v", name, last)
					}
				}
			},
			"": func(r *rapid.T) {
				used := 0
				for name, n := range uses {
					if n == 0 {
						continue
					}
					used++
					if p.Of(numbers[name]) != name {
						r.Fatalf("%d is %q, want %q", numbers[name], p.Of(numbers[name]), name)
					}
				}
				if p.Len() != used {
					r.Fatalf("%d names in use, want %d", p.Len(), used)
				}
			},
		})
	})
}
