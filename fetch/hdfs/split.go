package hdfs

import (
	"fmt"
	"strings"
)

// maxSplit bounds a split of a file: a node fetches a split at once, and its memory must
// hold many, even where HDFS blocks are of gigabytes.
const maxSplit = 256 << 20

// A split is a run of bytes of one file that is on the same hosts: a block, or a
// part of a very large one.
type split struct {
	number   int // among all splits of the scan
	file     int
	from, to int64
	hosts    []string
}

func (p split) String() string { return fmt.Sprintf("bytes %d to %d", p.from, p.to) }

// splitMark says, behind a file's stamp, which split of it is meant, and up to
// where its last value reaches.
func splitMark(from, to, end int64) string { return fmt.Sprintf(";part=%d-%d-%d", from, to, end) }

// wholeStamp is a stamp without such a mark.
func wholeStamp(stamp string) string {
	s, _, _ := strings.Cut(stamp, ";")
	return s
}
