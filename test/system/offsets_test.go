package system_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The record table of a batch of very many records is nowhere as a whole: however
// many have it open, it costs the daemon next to nothing, any part of it is right,
// and so is the size of the batch, also where records differ in length.
func TestRecordTableOfMany(t *testing.T) {
	t.Parallel()
	many := int64(rounds(2_000_000, 400_000))
	path := filepath.Join(t.TempDir(), "lines")
	two := []byte("a\nbc\n") // records of 2 and 3 bytes
	must(t, os.WriteFile(path, bytes.Repeat(two, int(many)/2), 0o600))
	n := start(t)
	n.create("d", source{uri: "file:" + path + "?as=lines"}, "--batch", fmt.Sprint(many))
	r := newRank(t)
	stat := func(path string) string { return sh(t, `stat -c %s "$1"`, path) }
	before := n.resident()
	var tables []string
	for i := range 4 {
		view := "d"
		if i > 0 {
			view = fmt.Sprintf("d@seed=%d,order=full", i)
		}
		if size := stat(n.batch(view, 0, 0)); size != fmt.Sprintln(many/2*5) {
			t.Errorf("%s: a batch of %s bytes, want %d", view, size, many/2*5)
		}
		table := n.batch(view, 0, 0) + ".idx"
		if size := stat(table); size != fmt.Sprintln(8*(many+1)) {
			t.Errorf("%s: a table of %s bytes, want %d", view, size, 8*(many+1))
		}
		tables = append(tables, table)
		for j := range 2 {
			r.open(fmt.Sprint("table", i, j), table)
		}
	}
	if grown := n.resident() - before; !race && grown > 24<<10 {
		t.Errorf("eight open tables take %d KiB", grown)
	}
	for i, table := range tables {
		for _, from := range []int64{0, 4095, 4096, 277_777, many - 5} {
			holdOffsets(t, table, many, from, i == 0)
		}
	}
}

// holdOffsets reads six numbers of a table, in a process of its own.
func holdOffsets(t *testing.T, table string, many, from int64, inOrder bool) {
	t.Helper()
	got := sh(t, `dd if="$1" bs=8 skip="$2" count=6 iflag=fullblock status=none`, table, fmt.Sprint(from))
	if len(got) != 48 {
		t.Fatalf("%s: %d bytes of six numbers from %d on", table, len(got), from)
	}
	last := uint64(0)
	for i := range int64(6) {
		at := binary.LittleEndian.Uint64([]byte(got[8*i:]))
		if want := uint64((from+i)/2*5 + (from+i)%2*2); inOrder && at != want {
			t.Errorf("%s: number %d is %d, want %d", table, from+i, at, want)
		}
		if step := at - last; i > 0 && step != 2 && step != 3 {
			t.Errorf("%s: record %d has %d bytes", table, from+i-1, step)
		}
		last = at
	}
	if from+5 == many && last != uint64(many/2*5) {
		t.Errorf("%s: the last number is %d", table, last)
	}
}
