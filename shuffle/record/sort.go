package record

import (
	"cmp"
	"slices"
	"sync/atomic"

	"rankfs/meta"
)

// A sorter sorts entries by the keys of their records, and those of one key by where they
// stand: by byte after byte of the prefixes, in place; where these are the same, by the bytes
// of keys that come next. Few entries, and those whose keys are the same for long, it compares.
type sorter struct {
	Spec
	from []byte       // what the records are in
	of   []slot       // if entries have slots, and not records
	left *atomic.Bool // the caller waits no more
}

const (
	few         = 24 // to insert one of 40 into those before it took as long as to count all bytes of a prefix
	prefixBytes = 8
	deepest     = 8 * prefixBytes
)

func (s *sorter) sort(all []entry) { s.byBytes(all, prefixBytes, 0) }

// byBytes sorts entries whose prefixes are the same but for so many bytes, the last. These are
// of keys that are the same up to depth.
func (s *sorter) byBytes(all []entry, last, depth int) {
	for len(all) > few {
		switch {
		case s.left.Load():
			return
		case last > 0:
			ends, same := byByte(all, last)
			last--
			if same {
				continue
			}
			begin := 0
			for _, end := range ends {
				if end-begin > 1 {
					s.byBytes(all[begin:end], last, depth)
				}
				begin = end
			}
			return
		case s.Order == meta.ByNumber || depth == deepest:
			slices.SortFunc(all, s.compareEntries)
			return
		}
		depth += prefixBytes
		all, last = s.goOn(all, depth), prefixBytes
	}
	s.insert(all)
}

// byByte puts entries in the order of one byte of their prefixes, counted from the last, and
// returns where those of each byte end; or says that it is the same in all.
func byByte(all []entry, number int) (ends [256]int, same bool) {
	shift := 8 * (uint(number) - 1) & 63
	for i := range all {
		ends[byte(all[i].prefix>>shift)]++
	}
	if ends[byte(all[0].prefix>>shift)] == len(all) {
		return ends, true
	}
	var next [256]int
	at := 0
	for b, n := range ends {
		next[b] = at
		at += n
		ends[b] = at
	}
	for b := range ends {
		for next[b] < ends[b] {
			e := all[next[b]]
			for to := byte(e.prefix >> shift); int(to) != b; to = byte(e.prefix >> shift) {
				all[next[to]], e = e, all[next[to]]
				next[to]++
			}
			all[next[b]] = e
			next[b]++
		}
	}
	return ends, false
}

// goOn has the prefixes of entries, which are the same, be those of the bytes of keys from
// depth on. Keys that end before come first, the shorter before the longer; it returns the
// others, which are yet to be sorted.
func (s *sorter) goOn(all []entry, depth int) []entry {
	ended := 0
	for i, e := range all {
		if key := s.keyOf(e); len(key) > depth {
			all[i].prefix = s.prefix(key[depth:])
		} else {
			all[i], all[ended] = all[ended], entry{uint64(len(key)), e.at}
			ended++
		}
	}
	slices.SortFunc(all[:ended], func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.at, b.at))
	})
	return all[ended:]
}

// insert sorts few entries.
func (s *sorter) insert(all []entry) {
	for i := 1; i < len(all); i++ {
		e, to := all[i], i
		for ; to > 0 && s.before(e, all[to-1]); to-- {
			all[to] = all[to-1]
		}
		all[to] = e
	}
}

func (s *sorter) before(a, b entry) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return s.compareEntries(a, b) < 0
}

// compareEntries is the order of entries whose prefixes are equal.
func (s *sorter) compareEntries(a, b entry) int {
	if s.left.Load() {
		return 0
	}
	return cmp.Or(s.compare(s.keyOf(a), s.keyOf(b)), cmp.Compare(a.at, b.at))
}

func (s *sorter) keyOf(e entry) []byte {
	at := e.at
	if s.of != nil {
		at = s.of[at].first - 1
	}
	r, _ := s.first(s.from[at:]) // it was found before
	return s.key(r)
}
