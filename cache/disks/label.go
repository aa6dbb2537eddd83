package disks

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Key names the content of a slab.
type Key = meta.Key

// A label is a slab as the name of its file describes it.
type label struct {
	key  Key
	size int64
	sum  uint64 // of the key, the size and the bytes: a damaged name is as wrong as damaged bytes
}

const slabSuffix = ".slab"

func (l label) name() string {
	b := make([]byte, 0, 112)
	b = hex.AppendEncode(b, l.key.Series[:])
	b = strconv.AppendUint(append(b, '-'), l.key.Rank, 10)
	b = strconv.AppendUint(append(b, '-'), l.key.Step, 10)
	b = strconv.AppendInt(append(b, '-'), l.size, 10)
	b = hex.AppendEncode(append(b, '-'), binary.BigEndian.AppendUint64(nil, l.sum))
	return string(append(b, slabSuffix...))
}

// parseName is the inverse of name. Other spellings of the same are refused.
func parseName(name string) (label, bool) {
	var l label
	base, ok := strings.CutSuffix(name, slabSuffix)
	parts := strings.Split(base, "-")
	if !ok || len(parts) != 5 || len(parts[0]) != 2*len(l.key.Series) || len(parts[4]) != 16 {
		return l, false
	}
	id, err := hex.DecodeString(parts[0])
	if err != nil {
		return l, false
	}
	copy(l.key.Series[:], id)
	for i, n := range []*uint64{&l.key.Rank, &l.key.Step} {
		if *n, err = strconv.ParseUint(parts[1+i], 10, 64); err != nil {
			return l, false
		}
	}
	if l.size, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return l, false
	}
	if l.sum, err = strconv.ParseUint(parts[4], 16, 64); err != nil {
		return l, false
	}
	return l, l.size >= 0 && l.name() == name
}

// newSum begins the sum of a slab, to which its bytes are to be written.
func newSum(k Key, size int64) *xxhash.Digest {
	b := append(make([]byte, 0, 40), k.Series[:]...)
	b = binary.LittleEndian.AppendUint64(b, k.Rank)
	b = binary.LittleEndian.AppendUint64(b, k.Step)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	h := xxhash.New()
	_, _ = h.Write(b)
	return h
}

func sumOf(k Key, mem []byte) uint64 {
	h := newSum(k, int64(len(mem)))
	_, _ = h.Write(mem)
	return h.Sum64()
}
