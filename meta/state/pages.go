package state

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// pageSize is how many elements a page has at most. What is changed first after it was shared
// is one page, and the table of pages: of 2^18 elements that has a thousand. Pages of 64
// would make the table larger than a page, pages of 1,024 the page larger than the table.
const pageSize = 256

// pages are elements in the order of their keys, none twice. They can be shared: what next
// returns has the same elements, and changes of it are not seen in what it was made of. The
// first change copies the table of pages; and each page is copied before it is changed first.
type pages[K cmp.Ordered, E keyed[K]] struct {
	table []*pageOf[E] // none is empty
	n     int          // of all elements
	era   uint64       // pages of an earlier one are shared
	owned bool         // the table is not shared
}

type keyed[K cmp.Ordered] interface{ key() K }

type pageOf[E any] struct {
	era uint64
	all []E
}

// next are the same elements, to be changed. The receiver stays what it is from then on.
func (p pages[K, E]) next() pages[K, E] {
	p.era++
	p.owned = false
	return p
}

func (p *pages[K, E]) len() int { return p.n }

// find is where the element of a key is, or would be. One after all others is in no page.
func (p *pages[K, E]) find(k K) (at, i int, found bool) {
	at = sort.Search(len(p.table), func(i int) bool {
		all := p.table[i].all
		return all[len(all)-1].key() >= k
	})
	if at == len(p.table) {
		return at, 0, false
	}
	all := p.table[at].all
	i = sort.Search(len(all), func(i int) bool { return all[i].key() >= k })
	return at, i, all[i].key() == k
}

func (p *pages[K, E]) get(k K) (e E, ok bool) {
	at, i, ok := p.find(k)
	if ok {
		e = p.table[at].all[i]
	}
	return e, ok
}

// first is the first element whose key is not below k.
func (p *pages[K, E]) first(k K) (e E, ok bool) {
	at, i, _ := p.find(k)
	if ok = at < len(p.table); ok {
		e = p.table[at].all[i]
	}
	return e, ok
}

// values goes through all elements. They must not be changed meanwhile.
func (p *pages[K, E]) values() iter.Seq[E] {
	return func(yield func(E) bool) {
		for _, one := range p.table {
			for _, e := range one.all {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// chunks are so many elements at a time. What is yielded is used again.
func chunks[E any](all iter.Seq[E], n int) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		var some []E
		for e := range all {
			if some = append(some, e); len(some) < n {
				continue
			}
			if !yield(some) {
				return
			}
			some = some[:0]
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// set enters an element, in place of one that has its key.
func (p *pages[K, E]) set(e E) {
	at, i, found := p.find(e.key())
	if found {
		p.own(at).all[i] = e
		return
	}
	p.n++
	switch last := len(p.table) - 1; {
	case at <= last:
	case last >= 0 && len(p.table[last].all) < pageSize:
		at, i = last, len(p.table[last].all)
	default:
		p.insert(at, nil)
	}
	if len(p.table[at].all) == pageSize {
		if cut := p.split(at, i); i > cut {
			at, i = at+1, i-cut
		}
	}
	one := p.own(at)
	if n := len(one.all); n == cap(one.all) { // append would make it larger than a page
		one.all = append(make([]E, 0, min(pageSize, max(8, 2*n))), one.all...)
	}
	one.all = slices.Insert(one.all, i, e)
}

// drop forgets the element of a key.
func (p *pages[K, E]) drop(k K) {
	at, i, found := p.find(k)
	if !found {
		return
	}
	p.n--
	one := p.own(at)
	one.all = slices.Delete(one.all, i, i+1)
	switch {
	case len(one.all) == 0:
		p.table = slices.Delete(p.table, at, at+1)
	case p.join(at):
	case at > 0:
		p.join(at - 1)
	}
}

// join makes one page of two of which little is left, if that is so.
func (p *pages[K, E]) join(at int) bool {
	if at+1 == len(p.table) || len(p.table[at].all)+len(p.table[at+1].all) > pageSize/2 {
		return false
	}
	one := p.own(at)
	one.all = append(one.all, p.table[at+1].all...)
	p.table = slices.Delete(p.table, at+1, at+2)
	return true
}

// split divides a full page, into which something is to come at i: in two halves; the last
// where that is, as what follows comes after it most often, and pages would stay half empty.
func (p *pages[K, E]) split(at, i int) (cut int) {
	cut = pageSize / 2
	if at == len(p.table)-1 {
		cut = max(cut, i)
	}
	one := p.own(at)
	p.insert(at+1, one.all[cut:])
	clear(one.all[cut:])
	one.all = one.all[:cut]
	return cut
}

// insert makes a page.
func (p *pages[K, E]) insert(at int, all []E) {
	p.ownTable()
	p.table = slices.Insert(p.table, at, &pageOf[E]{p.era, slices.Clone(all)})
}

// own is a page, which may be changed.
func (p *pages[K, E]) own(at int) *pageOf[E] {
	p.ownTable()
	if is := p.table[at]; is.era != p.era {
		p.table[at] = &pageOf[E]{p.era, append(make([]E, 0, min(pageSize, len(is.all)+8)), is.all...)}
	}
	return p.table[at]
}

func (p *pages[K, E]) ownTable() {
	if !p.owned {
		p.table, p.owned = slices.Clone(p.table), true
	}
}
