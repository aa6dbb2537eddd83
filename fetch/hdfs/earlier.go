package hdfs

import (
	"fmt"
	"strings"

	"rankfs/fetch/index"
)

// Reuse has Scan take the records of files that have not changed from the index of an
// earlier version of the source, instead of reading the files. The index that Scan
// makes is the same either way. x stays open until Scan returns.
func (s *Source) Reuse(x *index.Index) { s.earlier = x }

// reuse finds the splits whose records an earlier index has, by its file table: is says
// whether a row's stamp is that of a split of a file with such a stamp. Both the splits
// and the rows are in the order of paths, and of places in a file.
func (s *scan) reuse(is func(had, stamp string, p split) bool) {
	x := s.source.earlier
	s.known = make(map[int]uint32)
	if x == nil {
		return
	}
	if form, _, _ := strings.Cut(x.Fingerprint(), ","); form != s.source.form.name {
		return
	}
	row := 0
	for _, p := range s.splits {
		f := s.files[p.file]
		stamp := f.stamp()
		for ; row < x.Files(); row++ {
			had := x.File(uint32(row))
			if had.Path > f.path {
				break
			}
			if had.Path == f.path && is(had.Stamp, stamp, p) {
				s.known[p.number] = uint32(row)
				break
			}
		}
	}
}

// isFile reports whether a row is of a file as a whole.
func isFile(had, stamp string, _ split) bool { return had == stamp }

// isSplit reports whether a row is of one split of a file.
func isSplit(had, stamp string, p split) bool {
	return strings.HasPrefix(had, stamp+fmt.Sprintf(";part=%d-%d-", p.from, p.to))
}

// valuesAgain enters a split with its values, from the earlier index.
func (s *scan) valuesAgain(p split, row uint32) error {
	x := s.source.earlier
	first, n := x.FileRecords(row)
	id := s.b.AddFile(x.File(row))
	s.b.BeginChunk(p.hosts...)
	return s.b.Append(x, first, n, id)
}
