package disks

import (
	"iter"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/ledger"
)

// A table has a row for each slab on the disk of a directory, to be found by its key
// and in the order of use. A slab takes 48 bytes, 8 to be found by its key, and
// 16 more once this daemon has proven its bytes.
type table struct {
	*ledger.Ledger[Key, row]
	proofs []*[ledger.Page]instant // as the ledger's pages; nil: none is proven
	told   uint32                  // the slab that next returned last, or 0
	series ledger.Names[[16]byte]
	wide   map[uint32]extent // of the rows whose numbers do not fit
	began  time.Time
}

// A row has the key, size, place and proof of a slab. Row 0 closes the ring of use: the slab
// used last is older, that used longest ago newer.
type row struct {
	sum, step    uint64
	rank, size   uint32
	blocks       uint32 // on disk
	series       uint32 // its number
	newer, older uint32 // by use, if it is listed
	next         uint32 // in its chain
	flags        flags
}

type flags uint32

const (
	listed   flags = 1 << iota // may be opened, and is in the order of use
	seen                       // its name, by this daemon
	rejected                   // counted as wrong
	proven
	wide // see extent
)

// An extent has the fields of a row in full. Few slabs need one: they are larger
// than 4 GiB, or no series has such a rank.
type extent struct {
	rank       uint64
	size, real int64
}

// A proof is when this daemon last knew the bytes of a slab to be right, and the
// file's ctime then. The zero proof means never.
type proof struct {
	at      time.Time
	changed unix.Timespec // its ctime, which no process can set
}

// An instant is a proof: its time since the table began and the file's ctime,
// in nanoseconds.
type instant struct{ at, changed int64 }

func newTable() *table {
	t := &table{wide: make(map[uint32]extent), began: time.Now()}
	t.Ledger = ledger.New(t.key, func(r *row) *uint32 { return &r.next })
	return t
}

func (t *table) at(id uint32) *row { return t.At(id) }

func (t *table) is(id uint32, f flags) bool { return t.at(id).flags&f != 0 }

func (t *table) mark(id uint32, f flags) { t.at(id).flags |= f }

func (t *table) key(id uint32) Key {
	r := t.at(id)
	k := Key{Series: t.series.Of(r.series), Rank: uint64(r.rank), Step: r.step}
	if r.flags&wide != 0 {
		k.Rank = t.wide[id].rank
	}
	return k
}

func (t *table) label(id uint32) label {
	r := t.at(id)
	l := label{t.key(id), int64(r.size), r.sum}
	if r.flags&wide != 0 {
		l.size = t.wide[id].size
	}
	return l
}

// real is the room of the slab on disk, in bytes.
func (t *table) real(id uint32) int64 {
	r := t.at(id)
	if r.flags&wide != 0 {
		return t.wide[id].real
	}
	return int64(r.blocks) * block
}

// insert enters a slab whose key has none. It is not listed, and nothing else
// is said of it. There is no room for more than 2^32: then it returns 0.
func (t *table) insert(l label, real int64) uint32 {
	r := row{
		sum: l.sum, step: l.key.Step, rank: uint32(l.key.Rank), size: uint32(l.size), blocks: uint32(real / block),
	}
	if uint64(r.rank) != l.key.Rank || int64(r.size) != l.size || int64(r.blocks)*block != real {
		r.flags = wide
	}
	r.series = t.series.Take(l.key.Series)
	id := t.Insert(l.key, r)
	switch {
	case id == 0:
		t.series.Give(r.series)
	case r.flags == wide:
		t.wide[id] = extent{l.key.Rank, l.size, real}
	}
	return id
}

// remove forgets a slab.
func (t *table) remove(id uint32) {
	r := t.at(id)
	if r.flags&listed != 0 {
		t.unlist(id)
	}
	series := r.series
	t.Remove(id)
	t.series.Give(series)
	delete(t.wide, id)
	if t.Len() == 0 {
		t.proofs, t.told = nil, 0
	}
}

// list lets a slab be opened, as the one used last.
func (t *table) list(id uint32) {
	first := t.at(0).older
	r := t.at(id)
	r.newer, r.older = 0, first
	t.at(first).newer, t.at(0).older = id, id
	r.flags |= listed
}

func (t *table) unlist(id uint32) {
	r := t.at(id)
	if t.told == id {
		t.told = r.older
	}
	t.at(r.newer).older, t.at(r.older).newer = r.older, r.newer
	r.flags &^= listed
}

// touch counts a slab that is listed as used.
func (t *table) touch(id uint32) {
	t.unlist(id)
	t.list(id)
}

// oldest are the slabs that are listed, the one used longest ago first. They
// must not change meanwhile.
func (t *table) oldest() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := t.at(0).newer; id != 0 && yield(id); id = t.at(id).newer {
		}
	}
}

// next is oldest for a caller that unlocks the table between two slabs: it returns
// 0 after the last. A slab that is used meanwhile moves to the end, and may come
// twice. Only one goroutine may iterate at a time; it begins with rewind.
func (t *table) next() uint32 {
	id := t.at(t.told).newer
	if id != 0 {
		t.told = id
	}
	return id
}

func (t *table) rewind() { t.told = 0 }

// listed are the same slabs as they lie in memory: a million in 5 ms instead of
// 250. They may be removed meanwhile.
func (t *table) listed() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := uint32(1); id < t.End(); id++ {
			if t.is(id, listed) && !yield(id) {
				return
			}
		}
	}
}

// prove keeps a proof. What cannot be kept is none.
func (t *table) prove(id uint32, p proof) {
	r, page := t.at(id), int(id/ledger.Page)
	r.flags &^= proven
	changed := p.changed.Nano()
	if p.at.IsZero() || unix.NsecToTimespec(changed) != p.changed {
		return
	}
	for len(t.proofs) <= page {
		t.proofs = append(t.proofs, nil)
	}
	if t.proofs[page] == nil {
		t.proofs[page] = new([ledger.Page]instant)
	}
	t.proofs[page][id%ledger.Page] = instant{int64(p.at.Sub(t.began)), changed}
	r.flags |= proven
}

// proof is the last proof of a slab.
func (t *table) proof(id uint32) proof {
	if !t.is(id, proven) {
		return proof{}
	}
	p := t.proofs[id/ledger.Page][id%ledger.Page]
	return proof{t.began.Add(time.Duration(p.at)), unix.NsecToTimespec(p.changed)}
}
