package ledger

import (
	"hash/maphash"
	"math"
	"math/bits"
)

// Page is the number of rows that are made at a time.
const Page = 1024

// A Ledger has rows R, whose keys are K. It is not for concurrent use.
type Ledger[K comparable, R any] struct {
	key     func(id uint32) K
	link    func(*R) *uint32
	pages   []*[Page]R
	made    uint32 // rows that are in use or were; the first stands for none
	free    uint32 // begins the chain of those that were
	count   int
	heads   []*[Page]uint32 // of the chains of rows, by their hash
	buckets uint32
	seed    maphash.Seed
}

// New makes a ledger. Key returns the key of a row; link returns a field of it that
// the ledger owns, for its chains.
func New[K comparable, R any](key func(id uint32) K, link func(*R) *uint32) *Ledger[K, R] {
	l := &Ledger[K, R]{key: key, link: link, seed: maphash.MakeSeed()}
	l.reset()
	return l
}

func (l *Ledger[K, R]) reset() {
	l.made, l.free, l.buckets = 1, 0, 1
	l.pages = []*[Page]R{new([Page]R)}
	l.heads = []*[Page]uint32{new([Page]uint32)}
}

// At is the row of a number. The ledger's owner may change all of it but the link.
// Row 0 stands for no key, and the owner may use it freely.
func (l *Ledger[K, R]) At(id uint32) *R { return &l.pages[id/Page][id%Page] }

// Len is the count of rows in use.
func (l *Ledger[K, R]) Len() int { return l.count }

// End is above the numbers of all rows, of which some may not be in use.
func (l *Ledger[K, R]) End() uint32 { return l.made }

// Find returns the number of what has a key, or 0.
func (l *Ledger[K, R]) Find(k K) uint32 {
	id := *l.head(l.bucket(k))
	for id != 0 && l.key(id) != k {
		id = *l.link(l.At(id))
	}
	return id
}

// Insert enters a key that has no row. A ledger has room for 2^32 rows: when it
// is full Insert returns 0.
func (l *Ledger[K, R]) Insert(k K, r R) uint32 {
	id := l.take()
	if id == 0 {
		return 0
	}
	l.count++
	l.Spread(l.count)
	at, head := l.At(id), l.head(l.bucket(k))
	*at = r
	*l.link(at), *head = *head, id
	return id
}

// take returns a row that is not in use.
func (l *Ledger[K, R]) take() uint32 {
	id := l.free
	switch {
	case id != 0:
		l.free = *l.link(l.At(id))
		return id
	case l.made == math.MaxUint32:
		return 0
	case l.made%Page == 0:
		l.pages = append(l.pages, new([Page]R))
	}
	l.made++
	return l.made - 1
}

// Remove forgets a thing. Its key must still be what it was.
func (l *Ledger[K, R]) Remove(id uint32) {
	link := l.head(l.bucket(l.key(id)))
	for *link != id {
		link = l.link(l.At(*link))
	}
	own := l.link(l.At(id))
	*link = *own
	*own, l.free = l.free, id
	if l.count--; l.count == 0 && len(l.pages) > 1 {
		l.reset()
	}
}

func (l *Ledger[K, R]) head(bucket uint32) *uint32 { return &l.heads[bucket/Page][bucket%Page] }

// bucket is the one of k: as many bits of its hash as number all buckets, or one
// less if there is none of that number yet.
func (l *Ledger[K, R]) bucket(k K) uint32 {
	hash := uint32(maphash.Comparable(l.seed, k))
	mask := uint32(1)<<bits.Len32(l.buckets-1) - 1
	if b := hash & mask; b < l.buckets {
		return b
	}
	return hash & (mask >> 1)
}

// Spread makes the buckets enough for so many things: a chain is short, and one
// that is not there is mostly not looked for any further. To know the number
// beforehand spares moving them.
func (l *Ledger[K, R]) Spread(things int) {
	for int(l.buckets) < min(2*things, math.MaxUint32) {
		l.split()
	}
}

// split adds a bucket, and moves to it what is its own of the bucket whose
// number has a bit less.
func (l *Ledger[K, R]) split() {
	b := l.buckets
	if b%Page == 0 {
		l.heads = append(l.heads, new([Page]uint32))
	}
	l.buckets++
	to := l.head(b)
	for link := l.head(b - 1<<(bits.Len32(b)-1)); *link != 0; {
		id := *link
		own := l.link(l.At(id))
		if l.bucket(l.key(id)) != b {
			link = own
			continue
		}
		*link = *own
		*own, *to = *to, id
	}
}
