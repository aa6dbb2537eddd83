package system_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A step is what all ranks read together: by rank, their records.
type step struct {
	ranks   [][][]byte
	repeats int // as marked, over all ranks
}

func (s step) records() (all [][]byte) {
	for _, r := range s.ranks {
		all = append(all, r...)
	}
	return all
}

// A reading is a whole view, as plain file calls show it.
type reading []step

func (r reading) records() (all [][]byte) {
	for _, s := range r {
		all = append(all, s.records()...)
	}
	return all
}

// unique is the records that are not marked as repeats: those at the ends.
func (r reading) unique() (all [][]byte) {
	for _, s := range r {
		records := s.records()
		all = append(all, records[:len(records)-s.repeats]...)
	}
	return all
}

// readView reads a view to the end, and holds every file of it to what the
// others say of it. It may be called from several goroutines.
func (n *node) readView(t testing.TB, view string) reading {
	t.Helper()
	ranks := 0
	for _, name := range list(t, n.path(view)) {
		if strings.HasPrefix(name, "rank-") {
			ranks++
		}
	}
	steps := len(list(t, n.path(view, "rank-0"))) / 2
	sizes := make(map[string]int64)
	for rank := range ranks {
		names := list(t, n.path(view, fmt.Sprintf("rank-%d", rank)))
		if len(names) != 2*steps {
			t.Fatalf("%s: rank %d has %d steps, rank 0 %d", view, rank, len(names)/2, steps)
		}
		for _, name := range names {
			path := n.path(view, fmt.Sprintf("rank-%d", rank), name)
			info, err := os.Stat(path)
			must(t, err)
			sizes[path] = info.Size() // before any open
		}
	}
	var all reading
	for k := range steps {
		s := step{ranks: make([][][]byte, ranks)}
		for rank := range ranks {
			path := n.batch(view, rank, k)
			s.ranks[rank] = readBatch(t, path, sizes)
			s.repeats += number(t, path, "repeats")
		}
		all = append(all, s)
	}
	return all
}

// readBatch is the records of a batch, as its .idx divides it.
func readBatch(t testing.TB, path string, sizes map[string]int64) (records [][]byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	table, err := os.ReadFile(path + ".idx")
	must(t, err)
	if int64(len(content)) != sizes[path] || int64(len(table)) != sizes[path+".idx"] {
		t.Fatalf("%s: %d bytes and %d of .idx, st_size was %d and %d",
			path, len(content), len(table), sizes[path], sizes[path+".idx"])
	}
	offsets := make([]uint64, len(table)/8)
	for i := range offsets {
		offsets[i] = binary.LittleEndian.Uint64(table[8*i:])
	}
	if len(table)%8 != 0 || len(offsets) == 0 || offsets[0] != 0 || offsets[len(offsets)-1] != uint64(len(content)) ||
		!slices.IsSorted(offsets) {
		t.Fatalf("%s: a batch of %d bytes has offsets %d", path, len(content), offsets)
	}
	for i := range offsets[1:] {
		records = append(records, content[offsets[i]:offsets[i+1]])
	}
	if n := number(t, path, "records"); n != len(records) {
		t.Fatalf("%s: %d records, its attribute says %d", path, len(records), n)
	}
	return records
}

// number is the value of an extended attribute.
func number(t testing.TB, path, name string) int {
	t.Helper()
	buf := make([]byte, 64)
	n, err := unix.Getxattr(path, "user.rankfs."+name, buf)
	must(t, err)
	v, err := strconv.Atoi(string(buf[:n]))
	must(t, err)
	return v
}

// list is the names in a directory, in its order.
func list(t testing.TB, path string) []string {
	t.Helper()
	d, err := os.Open(path)
	must(t, err)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	must(t, err)
	return names
}

// sameRecords reports whether two lists hold the same records in one order.
func sameRecords(a, b [][]byte) bool {
	return slices.EqualFunc(a, b, bytes.Equal)
}

// sorted is the records in an order that does not depend on that they had.
func sorted(records [][]byte) [][]byte {
	return slices.SortedFunc(slices.Values(records), bytes.Compare)
}
