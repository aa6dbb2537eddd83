package state

import (
	"iter"
	"slices"
	"sort"
)

// A Commit is the attempt of a map that has won.
type Commit struct {
	Map     uint64
	Attempt uint64
	Writer  string // the node that it was written on
	Size    int64
	Sum     uint64   // of the bytes, and of the offsets of the parts
	Nodes   []string // that have a copy; none if it is lost
	Name    string   `json:",omitempty"` // of a blob: what it is put as
}

func (c Commit) key() uint64 { return c.Map }

// kept is the number of bytes of all copies.
func (c *Commit) kept() int64 { return c.Size * int64(len(c.Nodes)) }

// CopiesOn is the number of its copies that are on nodes of a set.
func (c *Commit) CopiesOn(nodes map[string]bool) (n int) {
	for _, id := range c.Nodes {
		if nodes[id] {
			n++
		}
	}
	return n
}

func (c Commit) withoutCopy(node string) Commit {
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(id string) bool { return id == node })
	return c
}

// Maps are the commits of a stage as they were at some time, in the order of the maps. Their
// pages are shared with the machine and all other readers: to ask for them costs little,
// however many there are, and what is committed later copies the pages that it changes.
type Maps struct {
	table []*pageOf[Commit]
	begin []int // how many are in the pages before each
	first int   // that is one of these
	n     int
}

// MapsOf are the maps of a list that has that order.
func MapsOf(all ...Commit) Maps {
	if len(all) == 0 {
		return Maps{}
	}
	return Maps{table: []*pageOf[Commit]{{all: all}}, begin: []int{0}, n: len(all)}
}

func listed(p *pages[uint64, Commit]) *Maps {
	m := &Maps{table: p.table, begin: make([]int, len(p.table)), n: p.n}
	at := 0
	for i, one := range p.table {
		m.begin[i] = at
		at += len(one.all)
	}
	return m
}

// Len is the number of maps.
func (m Maps) Len() int { return m.n }

// At is the i-th map, counted from 0.
func (m Maps) At(i int) Commit {
	i += m.first
	at := m.page(i)
	return m.table[at].all[i-m.begin[at]]
}

// page is the page which has the element of that number.
func (m Maps) page(i int) int {
	return sort.Search(len(m.begin), func(at int) bool { return m.begin[at] > i }) - 1
}

// All goes through them, with how many are before each.
func (m Maps) All() iter.Seq2[int, Commit] {
	return func(yield func(int, Commit) bool) {
		if m.n == 0 {
			return
		}
		i, at := 0, m.page(m.first)
		for skip := m.first - m.begin[at]; i < m.n; at, skip = at+1, 0 {
			for _, c := range m.table[at].all[skip:] {
				if i == m.n || !yield(i, c) {
					return
				}
				i++
			}
		}
	}
}

// Between are those of the maps of these numbers, both included.
func (m Maps) Between(from, to uint64) Maps {
	before := func(number uint64) int { return sort.Search(m.n, func(i int) bool { return m.At(i).Map >= number }) }
	first := before(from)
	m.n = max(first, before(to+1)) - first
	m.first += first
	return m
}
