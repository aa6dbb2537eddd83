package record

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// A tally is what the records of each key of a map come to, in a table by hashes of keys. Of
// many records with few keys, one of each key is left to be sorted.
type tally struct {
	Spec
	from   []byte // the map
	memory Memory
	slots  []slot // a power of two of them, of which at most half are taken
	taken  int
}

// A slot of the table is free if it has no record.
type slot struct {
	hash  uint64 // of the key
	first uint64 // where its first record is in the map, and one more
	value int64
}

const (
	slotBytes  = int64(unsafe.Sizeof(slot{}))
	leastSlots = 1 << 6
	firstSlots = 1 << 12
	tallyShare = 4 // of the bytes of the map, so many of which the table has one at most
)

// errManyKeys is that there are more keys than the table may have slots for.
var errManyKeys = errors.New("records have too many keys to be tallied")

func newTally(s Spec, from []byte, memory Memory) (*tally, error) {
	t := &tally{Spec: s, from: from, memory: memory}
	n := leastSlots
	for n < firstSlots && t.mayHave(2*n) {
		n *= 2
	}
	return t, t.grow(n)
}

func (t *tally) mayHave(slots int) bool {
	return int64(slots)*slotBytes <= int64(len(t.from)/tallyShare)
}

// grow gives the table so many slots.
func (t *tally) grow(n int) error {
	b, err := t.memory(int64(n) * slotBytes)
	if err != nil {
		return err
	}
	was := t.slots
	t.slots = unsafe.Slice((*slot)(unsafe.Pointer(unsafe.SliceData(b))), n)
	for _, s := range was {
		if s.first != 0 {
			*t.find(s.hash, nil) = s
		}
	}
	return nil
}

// add adds the record at a place in the map to its key, and reports whether that is a new one.
func (t *tally) add(at int, r, key []byte) (isNew bool, err error) {
	value, err := t.worth(r)
	if err != nil {
		return false, err
	}
	hash := xxhash.Sum64(key)
	s := t.find(hash, key)
	if s.first != 0 {
		s.value, err = t.join(key, s.value, value)
		return false, err
	}
	*s = slot{hash, uint64(at) + 1, value}
	t.taken++
	if 2*t.taken < len(t.slots) {
		return true, nil
	}
	if n := 2 * len(t.slots); t.mayHave(n) {
		return true, t.grow(n)
	}
	return true, errManyKeys
}

// find is the slot of a key that hashes to that, or the free one that it is to have; without
// a key it is a free one.
func (t *tally) find(hash uint64, key []byte) *slot {
	for i := hash; ; i++ {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.first == 0 || s.hash == hash && key != nil && bytes.Equal(t.keyAt(s.first-1), key) {
			return s
		}
	}
}

func (t *tally) keyAt(at uint64) []byte {
	r, _ := t.first(t.from[at:]) // it was found before
	return t.key(r)
}

// of is what the records of a key have come to.
func (t *tally) of(key []byte) int64 { return t.find(xxhash.Sum64(key), key).value }

// each calls f for the first record of each key.
func (t *tally) each(f func(at int, key []byte)) {
	for _, s := range t.slots {
		if s.first != 0 {
			f(int(s.first-1), t.keyAt(s.first-1))
		}
	}
}
