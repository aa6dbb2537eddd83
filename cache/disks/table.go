package disks

import (
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"
)

// A table is what a directory knows of each slab on its disk: found by its key,
// and in the order of use. A slab takes 48 bytes, 8 to be found by its key, and
// 16 more once this daemon has proven its bytes. None of them is a pointer, so
// the garbage collector does not look through them.
//
// Records are numbered. Those of slabs that are gone are used again, and given
// back when there is no slab left. Nothing is ever moved to make room, so that
// no insertion takes long: the table grows by a chunk of records, and its hash
// by a bucket at a time (it is a linear hash table).
type table struct {
	chunks  []chunk
	made    uint32 // records that are in use or were; the first stands for none
	free    uint32 // begins the chain of those that were
	told    uint32 // the slab that next returned last, or 0
	slabs   int
	heads   []*[chunkSize]uint32 // of the chains of slabs, by their hash
	buckets uint32
	seed    maphash.Seed
	plans   plans
	wide    map[uint32]extent // of the records whose numbers do not fit
	began   time.Time
}

const chunkSize = 1024

type chunk struct {
	records *[chunkSize]record
	proofs  *[chunkSize]instant // nil: none is proven
}

// A record is what is known of a slab. Record 0 closes the ring of use: the slab
// used last is older, that used longest ago newer.
type record struct {
	sum, step    uint64
	rank, size   uint32
	blocks       uint32 // on disk
	plan         uint32 // its number
	newer, older uint32 // by use, if it is listed
	next         uint32 // in its chain
	flags        flags
}

const block = 512 // as stat counts them, whatever the file system's are

type flags uint32

const (
	listed   flags = 1 << iota // may be opened, and is in the order of use
	seen                       // its name, by this daemon
	rejected                   // counted as wrong
	proven
	wide // see extent
)

// An extent is what is in a record, in full. Few slabs need one: they are larger
// than 4 GiB, or no plan has such a rank.
type extent struct {
	rank       uint64
	size, real int64
}

// An instant is a proof: its time since the table began and the file's ctime,
// in nanoseconds.
type instant struct{ at, changed int64 }

func newTable() *table {
	t := &table{made: 1, buckets: 1, seed: maphash.MakeSeed(), wide: make(map[uint32]extent), began: time.Now()}
	t.chunks = []chunk{{records: new([chunkSize]record)}}
	t.heads = []*[chunkSize]uint32{new([chunkSize]uint32)}
	t.plans.numbers = make(map[[16]byte]uint32)
	return t
}

func (t *table) at(id uint32) *record { return &t.chunks[id/chunkSize].records[id%chunkSize] }

func (t *table) is(id uint32, f flags) bool { return t.at(id).flags&f != 0 }

func (t *table) mark(id uint32, f flags) { t.at(id).flags |= f }

func (t *table) key(id uint32) Key {
	r := t.at(id)
	k := Key{t.plans.all[r.plan].id, uint64(r.rank), r.step}
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

// real is what the slab takes on disk, in bytes.
func (t *table) real(id uint32) int64 {
	r := t.at(id)
	if r.flags&wide != 0 {
		return t.wide[id].real
	}
	return int64(r.blocks) * block
}

// find returns the slab of k, or 0.
func (t *table) find(k Key) uint32 {
	id := *t.head(t.bucket(k))
	for id != 0 && t.key(id) != k {
		id = t.at(id).next
	}
	return id
}

// insert enters a slab whose key has none. It is not listed, and nothing else
// is said of it. There is no room for more than 2^32: then it returns 0.
func (t *table) insert(l label, real int64) uint32 {
	id := t.take()
	if id == 0 {
		return 0
	}
	r := t.at(id)
	*r = record{
		sum: l.sum, step: l.key.Step, rank: uint32(l.key.Rank), size: uint32(l.size),
		blocks: uint32(real / block), plan: t.plans.take(l.key.Plan),
	}
	if t.label(id) != l || t.real(id) != real {
		t.wide[id] = extent{l.key.Rank, l.size, real}
		r.flags = wide
	}
	t.slabs++
	t.spread(t.slabs)
	head := t.head(t.bucket(l.key))
	r.next, *head = *head, id
	return id
}

// take returns a record that is not in use.
func (t *table) take() uint32 {
	id := t.free
	switch {
	case id != 0:
		t.free = t.at(id).next
		return id
	case t.made == math.MaxUint32:
		return 0
	case t.made%chunkSize == 0:
		t.chunks = append(t.chunks, chunk{records: new([chunkSize]record)})
	}
	t.made++
	return t.made - 1
}

// remove forgets a slab.
func (t *table) remove(id uint32) {
	r := t.at(id)
	if r.flags&listed != 0 {
		t.unlist(id)
	}
	link := t.head(t.bucket(t.key(id)))
	for *link != id {
		link = &t.at(*link).next
	}
	*link = r.next
	t.plans.give(r.plan)
	delete(t.wide, id)
	r.next, t.free = t.free, id
	if t.slabs--; t.slabs == 0 && len(t.chunks) > 1 {
		*t = *newTable()
	}
}

func (t *table) head(bucket uint32) *uint32 {
	return &t.heads[bucket/chunkSize][bucket%chunkSize]
}

// bucket is the one of k: as many bits of its hash as number all buckets, or one
// less if there is none of that number yet.
func (t *table) bucket(k Key) uint32 {
	hash := uint32(maphash.Comparable(t.seed, k))
	mask := uint32(1)<<bits.Len32(t.buckets-1) - 1
	if b := hash & mask; b < t.buckets {
		return b
	}
	return hash & (mask >> 1)
}

// spread makes the buckets enough for so many slabs: a chain is short, and one
// that is not there is mostly not looked for any further.
func (t *table) spread(slabs int) {
	for int(t.buckets) < min(2*slabs, math.MaxUint32) {
		t.split()
	}
}

// split adds a bucket, and moves to it what is its own of the bucket whose
// number has a bit less.
func (t *table) split() {
	b := t.buckets
	if b%chunkSize == 0 {
		t.heads = append(t.heads, new([chunkSize]uint32))
	}
	t.buckets++
	to := t.head(b)
	for link := t.head(b - 1<<(bits.Len32(b)-1)); *link != 0; {
		id := *link
		r := t.at(id)
		if t.bucket(t.key(id)) != b {
			link = &r.next
			continue
		}
		*link = r.next
		r.next, *to = *to, id
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

// next is oldest for one who lets go of the table between two slabs: it returns
// 0 when there is no other. One that is used meanwhile comes last, and may come
// twice. There is one who asks, and begins with rewind.
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
		for id := uint32(1); id < t.made; id++ {
			if t.is(id, listed) && !yield(id) {
				return
			}
		}
	}
}

// prove keeps a proof. What cannot be kept is none.
func (t *table) prove(id uint32, p proof) {
	r, c := t.at(id), &t.chunks[id/chunkSize]
	r.flags &^= proven
	changed := p.changed.Nano()
	if p.at.IsZero() || unix.NsecToTimespec(changed) != p.changed {
		return
	}
	if c.proofs == nil {
		c.proofs = new([chunkSize]instant)
	}
	c.proofs[id%chunkSize] = instant{int64(p.at.Sub(t.began)), changed}
	r.flags |= proven
}

// proof is what was proven of a slab last.
func (t *table) proof(id uint32) proof {
	if !t.is(id, proven) {
		return proof{}
	}
	p := t.chunks[id/chunkSize].proofs[id%chunkSize]
	return proof{t.began.Add(time.Duration(p.at)), unix.NsecToTimespec(p.changed)}
}
