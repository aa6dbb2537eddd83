package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// A table is a map that can be shared: the copy that share returns stays what
// it is, and the next change of the table is made in a map of its own. Values
// are never changed in place.
type table[K comparable, V any] struct {
	m      map[K]V
	shared bool
}

func (t *table[K, V]) get(k K) (V, bool) {
	v, ok := t.m[k]
	return v, ok
}

func (t *table[K, V]) set(k K, v V) {
	t.own()
	t.m[k] = v
}

func (t *table[K, V]) drop(k K) {
	t.own()
	delete(t.m, k)
}

func (t *table[K, V]) own() {
	switch {
	case t.m == nil:
		t.m = make(map[K]V)
	case t.shared:
		t.m = maps.Clone(t.m)
	}
	t.shared = false
}

func (t *table[K, V]) share() table[K, V] {
	t.shared = true
	return *t
}

func (t *table[K, V]) len() int { return len(t.m) }

// sorted goes through a table by key.
func sorted[K cmp.Ordered, V any](t *table[K, V]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(t.m)) {
			if !yield(k, t.m[k]) {
				return
			}
		}
	}
}

func values[K cmp.Ordered, V any](t *table[K, V]) []V {
	all := make([]V, 0, t.len())
	for _, v := range sorted(t) {
		all = append(all, v)
	}
	return all
}
