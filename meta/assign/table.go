package assign

import "slices"

// A table is a list of numbers for each of several rows.
type table struct{ start, list []int32 }

func (t table) row(i int32) []int32 { return t.list[t.start[i]:t.start[i+1]] }

// tabulate collects for each of n rows the places where it stands in rowOf,
// ascending; rows below zero are left out.
func tabulate(n int, rowOf []int32) table {
	t := table{start: make([]int32, n+1)}
	for _, row := range rowOf {
		if row >= 0 {
			t.start[row+1]++
		}
	}
	for i := range n {
		t.start[i+1] += t.start[i]
	}
	t.list = make([]int32, t.start[n])
	next := slices.Clone(t.start)
	for i, row := range rowOf {
		if row >= 0 {
			t.list[next[row]] = int32(i)
			next[row]++
		}
	}
	return t
}

// sized returns a slice of length n in the memory of s, if that is enough.
// Its elements have any value.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func filled(n int, with int32) []int32 {
	return fill(make([]int32, n), with)
}

func fill(s []int32, with int32) []int32 {
	for i := range s {
		s[i] = with
	}
	return s
}
