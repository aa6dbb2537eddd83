package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"rankfs/meta"
)

// A keyTable combines the records of each key of a map, in a table by hashes of keys. Of
// many records with few keys, one of each key is left to be sorted.
type keyTable struct {
	Spec
	from    []byte // the map
	memory  Memory
	room    []byte // that of the table
	slots   []slot // a power of two of them, of which one in fullOf is free at least
	taken   int
	records int    // of the map so far
	next    []slot // that are to be added
	touched uint64 // of slots that are read to have them near
	short   [nameBytes]byte
}

// A slot of the table is free if it has no record.
type slot struct {
	name  name   // of the key
	first uint64 // where its first record is in the map, and one more
	value int64
}

// A name tells keys apart: one of up to shortKey bytes is in its name, and in the last byte how
// many these are, and one more; of a longer one there are its hash, and 56 bits of its length.
type name [2]uint64

const (
	shortKey  = 15
	nameBytes = 16
	lastByte  = 56
	longKey   = math.MaxUint8
)

func nameOf(key []byte) name {
	n := len(key)
	switch {
	case n > shortKey:
		return name{maphash.Bytes(seed, key), uint64(n) | longKey<<lastByte}
	case cap(key) < nameBytes:
		key = append(make([]byte, 0, nameBytes), key...)
	}
	b := key[:nameBytes] // what comes after it is the map's, too
	low, high, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), uint64(n+1)<<lastByte
	if n < 8 {
		return name{low & (1<<(8*n) - 1), size}
	}
	return name{low, high&(1<<(8*(n-8))-1) | size}
}

func (n name) isShort() bool { return n[1]>>lastByte != longKey }

// key is the key of a short name, in bytes that it is given.
func (n name) key(b *[nameBytes]byte) []byte {
	binary.LittleEndian.PutUint64(b[:], n[0])
	binary.LittleEndian.PutUint64(b[8:], n[1])
	return b[:n[1]>>lastByte-1]
}

// hash is where in a table a name is looked for.
func (n name) hash() uint64 {
	high, low := bits.Mul64(n[0]^salt[0], n[1]^salt[1])
	return high ^ low
}

// No program can know which keys would come to the same place. What is made does not depend on it.
var (
	seed = maphash.MakeSeed()
	salt = name{rand.Uint64(), rand.Uint64()}
)

const (
	slotBytes = int64(unsafe.Sizeof(slot{}))
	minSlots  = 1 << 6
	fullOf    = 4
)

// errManyKeys is that there are more keys than the table may have slots for.
var errManyKeys = errors.New("records have too many keys to be tallied")

// together is of how many records memory is asked for at a time: one after the other it
// would be waited for.
const together = 16

func newKeyTable(s Spec, from []byte, memory Memory) (*keyTable, error) {
	t := &keyTable{Spec: s, from: from, memory: memory, next: make([]slot, 0, together)}
	return t, t.grow(minSlots)
}

// mayHave reports whether a table of so many slots, and the one before it as long as its slots
// are moved, take no more than the index of all records, if all of the map are about as long
// as those up to a place.
func (t *keyTable) mayHave(slots int, at uint64) bool {
	records := float64(t.records) * float64(len(t.from)) / float64(at)
	return 1.5*float64(int64(slots)*slotBytes) <= records*float64(entryBytes)
}

// grow gives the table so many slots.
func (t *keyTable) grow(n int) error {
	b, err := t.memory.More(int64(n) * slotBytes)
	if err != nil {
		return err
	}
	room, was := t.room, t.slots
	t.room, t.slots = b, unsafe.Slice((*slot)(unsafe.Pointer(unsafe.SliceData(b))), n)
	for _, s := range was {
		if s.first != 0 {
			*t.find(s) = s
		}
	}
	t.memory.Free(room)
	return nil
}

// add adds the record at a place in the map to its key, with some of those that follow.
func (t *keyTable) add(at int, r, key []byte) error {
	value, err := t.worth(r)
	if err != nil {
		return placed(t.records, at, err)
	}
	t.next = append(t.next, slot{nameOf(key), uint64(at) + 1, value})
	t.records++
	if len(t.next) < cap(t.next) {
		return nil
	}
	return t.addNext()
}

// addNext adds records that were not added yet.
func (t *keyTable) addNext() error {
	for _, one := range t.next { // memory is asked for all of them at a time
		t.touched += t.slots[one.name.hash()&uint64(len(t.slots)-1)].first
	}
	for i, one := range t.next {
		s := t.find(one)
		if s.first != 0 {
			sum, ok := t.join(s.value, one.value)
			if !ok {
				return placed(t.records-len(t.next)+i, int(one.first-1), beyond(t.keyOf(one)))
			}
			s.value = sum
			continue
		}
		*s = one
		if t.taken++; len(t.slots)-t.taken >= len(t.slots)/fullOf {
			continue
		}
		n := 2 * len(t.slots)
		if !t.mayHave(n, one.first) {
			return errManyKeys
		}
		if err := t.grow(n); err != nil {
			return err
		}
	}
	t.next = t.next[:0]
	return nil
}

// find is the slot of a record's key, or the free one that it is to have.
func (t *keyTable) find(one slot) *slot {
	for i := one.name.hash(); ; i++ {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.first == 0 || s.name == one.name && (one.name.isShort() || bytes.Equal(t.keyOf(*s), t.keyOf(one))) {
			return s
		}
	}
}

func (t *keyTable) keyOf(one slot) []byte {
	r, _ := t.Spec.first(t.from[one.first-1:]) // it was found before
	return t.key(r)
}

// each calls f for each key, which may be overwritten afterwards, with the slot that it has.
func (t *keyTable) each(f func(slot int, key []byte)) {
	for i := range t.slots {
		if t.slots[i].first != 0 {
			f(i, t.keyIn(i))
		}
	}
}

// keyIn is the key of a slot, until there is another one.
func (t *keyTable) keyIn(slot int) []byte {
	if s := t.slots[slot]; !s.name.isShort() {
		return t.keyOf(s)
	}
	return t.slots[slot].name.key(&t.short)
}

// put puts what the records of a slot's key have come to.
func (t *keyTable) put(slot int, c *combiner) {
	s, r := t.slots[slot], []byte(nil)
	if t.Combine == meta.First {
		r, _ = t.Spec.first(t.from[s.first-1:]) // it was found before
	}
	c.begin(r, t.keyIn(slot), s.value)
	c.end()
}
