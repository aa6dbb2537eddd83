package record_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// specOf is what a spec says of records.
func specOf(t *testing.T, text string) record.Spec {
	t.Helper()
	s, err := meta.ParseStage(text)
	if err != nil {
		t.Fatal(err)
	}
	return record.Spec(s.Records)
}

// A heap is memory for a division.
type heap struct {
	asked      []int64 // of it
	held, most int64
}

func (h *heap) More(n int64) ([]byte, error) {
	h.asked, h.held = append(h.asked, n), h.held+n
	h.most = max(h.most, h.held)
	return make([]byte, n), nil
}

func (h *heap) Free(b []byte) { h.held -= int64(len(b)) }

// divide divides a map; all that it is then is in its bytes.
func divide(t *testing.T, s record.Spec, m string, pieces int) record.Divided {
	t.Helper()
	is, err := s.Divide(context.Background(), []byte(m), nil, uint64(pieces), new(heap))
	if err != nil {
		t.Fatal(err)
	}
	return whole(is, m)
}

// whole has records that stay as they were written before what comes after them.
func whole(is record.Divided, m string) record.Divided {
	if is.AsWritten {
		is.Bytes = append([]byte(m), is.Bytes...)
	}
	return is
}

// mergedOf is what runs are, merged.
func mergedOf(t *testing.T, s record.Spec, runs []record.Run) string {
	t.Helper()
	n, err := s.Merge(context.Background(), runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if again, err := s.Merge(context.Background(), runs, b); err != nil || again != n {
		t.Fatalf("a part has %d bytes when they are counted, and %d when they are put: %v", n, again, err)
	}
	return string(b)
}

// partsOf divides maps, and makes the parts of them.
func partsOf(t *testing.T, s record.Spec, parts int, maps ...string) (all []string) {
	t.Helper()
	runs := make([][][]byte, parts) // of each part what maps have of it
	for _, m := range maps {
		is := divide(t, s, m, parts)
		for p := range parts {
			runs[p] = append(runs[p], is.Bytes[number(is.Offsets, p):number(is.Offsets, p+1)])
		}
	}
	for p := range parts {
		if !s.Ordered() {
			all = append(all, string(bytes.Join(runs[p], nil)))
			continue
		}
		var of []record.Run
		for _, b := range runs[p] {
			of = append(of, record.Run{Buffers: [][]byte{b}})
		}
		all = append(all, mergedOf(t, s, of))
	}
	return all
}

func number(offsets []byte, i int) uint64 { return binary.LittleEndian.Uint64(offsets[8*i:]) }

// Many keys that are the same for long, that are the begin of one another, with zeros at their
// ends, or equal, are in the order of their bytes, and those of one key as they were written.
func TestManyKeysAlike(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		alike := strings.Repeat("k", r.IntN(90))
		var lines []string
		for i := range 600 {
			key := alike[:len(alike)-r.IntN(1+len(alike))*r.IntN(2)] + strings.Repeat("\x00", r.IntN(12)*r.IntN(2)) + []string{"", "a", "ab", strconv.Itoa(r.IntN(500))}[r.IntN(4)]
			lines = append(lines, fmt.Sprintf("%s\t%d\n", key, i))
		}
		got := partsOf(t, specOf(t, "record=line key=1 sort=key"), 1, strings.Join(lines, ""))[0]
		slices.SortStableFunc(lines, func(a, b string) int {
			x, _, _ := strings.Cut(a, "\t")
			y, _, _ := strings.Cut(b, "\t")
			return cmp.Compare(x, y)
		})
		if got != strings.Join(lines, "") {
			t.Errorf("seed %d: lines that begin with %q are in another order than that of their keys", seed, alike)
		}
	}
}

// By offsets of its writer a map is divided as these say, and each part sorted.
func TestGivenOffsets(t *testing.T) {
	s := specOf(t, "record=line sort=key")
	var given []byte
	for _, at := range []uint64{0, 4, 4, 10, 10} {
		given = binary.LittleEndian.AppendUint64(given, at)
	}
	is, err := s.Divide(context.Background(), []byte("b\na\nd\nc\nf"+"\n"), given, 4, new(heap))
	if err != nil || string(is.Bytes) != "a\nb\nc\nd\nf\n" || !bytes.Equal(is.Offsets, given) {
		t.Errorf("%q at %x, %v", is.Bytes, is.Offsets, err)
	}
}

// Records of few keys are added up before they are sorted, and only the keys are; of many keys
// all records are. Both come to the same.
func TestFewKeysAreAddedUp(t *testing.T) {
	const (
		records  = 12_000
		minTable = 2 << 10
	)
	for _, test := range []struct {
		keys   int
		sorted int // entries of the index, of which each has 16 bytes
	}{{1, 1}, {5, 5}, {700, 700}, {9000, records}, {1 << 40, records}} {
		for _, text := range []string{"combine=sum", "combine=first by=range", "combine=count sort=key:number"} {
			r := rand.New(rand.NewPCG(uint64(test.keys), 3))
			s := specOf(t, "record=line key=1 "+text)
			var m strings.Builder
			var all []string
			used := make(map[int]bool)
			for i := range records {
				key := r.IntN(test.keys)
				if i < test.keys && test.sorted == test.keys {
					key = i // each is there
				}
				used[key] = true
				line := fmt.Sprintf("%d\t%d\tsome more of it", key, r.IntN(100)-50)
				m.WriteString(line + "\n")
				all = append(all, line)
			}
			var memory heap
			is, err := s.Divide(context.Background(), []byte(m.String()), nil, 3, &memory)
			if err != nil {
				t.Fatal(err)
			}
			if n := memory.asked[len(memory.asked)-2]; n != int64(16*test.sorted) {
				t.Errorf("%s of %d keys: %v bytes were asked for, want %d entries", text, len(used), memory.asked, test.sorted)
			}
			if n := memory.most - int64(len(is.Bytes)); n > 16*records+minTable {
				t.Errorf("%s of %d keys: %d bytes at a time beside those that are made, want %d for each record", text, len(used), n, 16)
			}
			parts := 3
			if s.Ranges { // slices, before samples
				is.Bytes, parts = is.Bytes[:number(is.Offsets, 3)], 1
			}
			if want := strings.Join(plain(s, parts, [][]string{all}), ""); string(is.Bytes) != want {
				t.Errorf("%s of %d keys: %d bytes, want %d", text, len(used), len(is.Bytes), len(want))
			}
		}
	}
}

// Keys of which one is the beginning of another, whose ends are zero bytes, or which are the same
// up to their last byte, are told apart, however long they are, also at the end of the map.
func TestKeysAlikeAreToldApart(t *testing.T) {
	var keys []string
	for _, n := range []int{0, 1, 7, 8, 9, 14, 15, 16, 17, 255, 256, 300} {
		for _, end := range []string{"", "\x00", "\xff", "a"} {
			keys = append(keys, strings.Repeat("a", n)+end, strings.Repeat("\x00", n)+end)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, text := range []string{"combine=sum", "combine=min", "combine=first by=range"} {
		s := specOf(t, "record=line key=1 "+text)
		var all []string
		for i := range 40 * len(keys) {
			all = append(all, fmt.Sprintf("%s\t%d", keys[i*7%len(keys)], i))
		}
		var memory heap
		m := strings.Join(all, "\n")
		is, err := s.Divide(context.Background(), slices.Clip([]byte(m)), nil, 1, &memory)
		if err != nil {
			t.Fatal(err)
		}
		if n := memory.asked[len(memory.asked)-2]; n != int64(16*len(keys)) {
			t.Errorf("%s: %v bytes were asked for, want %d entries", text, memory.asked, len(keys))
		}
		if s.Ranges { // one slice, before its sample
			is.Bytes = is.Bytes[:number(is.Offsets, 1)]
		}
		if want := plain(s, 1, [][]string{all})[0]; string(is.Bytes) != want {
			t.Errorf("%s: %q, want %q", text, is.Bytes, want)
		}
	}
}

// A map that is in order is not sorted once more: no entry is made of any of its records. If
// it has all newlines, and no part has records from here and there, they are not even copied.
func TestMapsInOrder(t *testing.T) {
	given := make([]byte, 16, 24) // where three parts begin and end, the first of which is empty
	given = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(given[:8], 0), 4)
	given = binary.LittleEndian.AppendUint64(given, 8)
	for _, test := range []struct {
		spec, text string
		given      []byte
		parts      uint64
		asked      []int64 // bytes of memory
	}{
		{"record=line sort=key", "a\nb\nb\nc\n", nil, 3, []int64{8}},
		{"record=line sort=key", "a\nb\nb\nc\n", nil, 1, nil},
		{"record=line sort=key", "a\nb\nb\nc", nil, 1, []int64{8}},
		{"record=line sort=key", "a\nc\nb\nd\n", nil, 3, []int64{4 * 16, 8}},
		{"record=line", "b\na\n", nil, 3, []int64{4}},
		{"record=line", "b\na\n", nil, 1, nil},
		{"record=line key=1 sort=key:number", "-9\n08\n9\n10\n", nil, 3, []int64{11}},
		{"record=line key=1 sort=key:number", "10\n9\n", nil, 3, []int64{2 * 16, 5}},
		{"record=line sort=key", "c\nd\na\nb\n", given, 3, nil},
		{"record=line sort=key", "c\nd\na\nb", given[:24:24], 3, []int64{8}},
		{"record=line sort=key", "c\nd\nb\na\n", given, 3, []int64{4 * 16, 8}},
		{"record=line by=range", "a\nb\nc\n", nil, 3, []int64{3 * 66}},
		{"record=line by=range", "a\nb\nc", nil, 3, []int64{6 + 3*66}},
		{"record=line by=range", "", nil, 3, []int64{3 * 66}},
		{"record=line by=range", "a\nc\nb", nil, 3, []int64{3 * 16, 6 + 3*66}},
		{"record=sizes by=range", "\x01\x00\x00\x00a", nil, 3, []int64{3 * 66}},
		{"record=line by=range combine=first", "a\na\nc\n", nil, 3, []int64{64 * 32, 2 * 16, 4 + 3*66}},
	} {
		if test.given != nil {
			test.given = binary.LittleEndian.AppendUint64(test.given[:24:24], uint64(len(test.text)))
		}
		var memory heap
		s := specOf(t, test.spec)
		is, err := s.Divide(context.Background(), []byte(test.text), test.given, test.parts, &memory)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(memory.asked, test.asked) {
			t.Errorf("%s of %q, %d parts, asked for memory of %d bytes, want %d", test.spec, test.text, test.parts, memory.asked, test.asked)
		}
		is = whole(is, test.text)
		for i, sum := range is.Sums {
			if piece := is.Bytes[number(is.Offsets, i):number(is.Offsets, i+1)]; sum != xxhash.Sum64(piece) {
				t.Errorf("%s of %q: piece %d, %q, has another sum than is said", test.spec, test.text, i, piece)
			}
		}
		if ends := number(is.Offsets, len(is.Offsets)/8-1); ends != uint64(len(is.Bytes)) {
			t.Errorf("%s of %q: pieces end at %d of %d bytes", test.spec, test.text, ends, len(is.Bytes))
		}
		if test.given != nil && strings.HasSuffix(test.text, "\n") && !bytes.Equal(is.Offsets, test.given) {
			t.Errorf("parts are at %x, want %x", is.Offsets, test.given)
		}
	}
}

// What is wrong with a record is said, with where it is.
func TestErrors(t *testing.T) {
	for _, test := range []struct{ spec, text, want string }{
		{"record=fixed:4", "abcdef", "record 1, at byte 4: it ends after 2 of its 4 bytes"},
		{"record=sizes", "\x01\x00\x00\x00ab", "record 1, at byte 5: it ends after 1 of the 4 bytes of its size"},
		{"record=sizes", "\x09\x00\x00\x00ab", "record 0, at byte 0: its size is 9, and it ends after 2 of that"},
		{"record=line key=1 sort=key:number", "1\nx\n", `record 1, at byte 2: key "x" is no number, and the spec has sort=key:number`},
		{"record=line key=1 combine=sum", "a\t1\na\tb\n", `record 1, at byte 4: field 2 is "b", and not a whole number of 64 bits`},
		{"record=line key=1 combine=min", "a\n", `field 2 is "", and not a whole number`},
		{"record=line key=1 combine=sum", "a\t9223372036854775807\na\t1\n", `record 1, at byte 22: the sum for key "a" is beyond the numbers of 64 bits`},
		{"record=line key=1 combine=sum", "a\t-9223372036854775808\na\t-1\n", `the sum for key "a" is beyond the numbers of 64 bits`},
		{"record=line key=1 combine=max", "a\t9223372036854775808\n", `and not a whole number of 64 bits`},
	} {
		_, err := specOf(t, test.spec).Divide(context.Background(), []byte(test.text), nil, 2, new(heap))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s of %q: %v, want %s", test.spec, test.text, err, test.want)
		}
	}
}

// The extremes of 64 bits are numbers.
func TestExtremes(t *testing.T) {
	got := partsOf(t, specOf(t, "record=line key=1 combine=sum"), 1, "a\t9223372036854775807\nb\t-9223372036854775808\n", "a\t0\nb\t+0\n")
	if want := "a\t9223372036854775807\nb\t-9223372036854775808\n"; got[0] != want {
		t.Errorf("%q, want %q", got[0], want)
	}
}

// Numbers are compared exactly, however long they are.
func TestLongNumbers(t *testing.T) {
	var lines []string // in their order
	for _, digits := range []int{14, 15, 1<<15 - 2, 1<<15 - 1, 1 << 15, 1 << 17} {
		for _, first := range "1589" {
			lines = append(lines, string(first)+strings.Repeat("7", digits-1)+"\n", string(first)+strings.Repeat("7", digits-1)+".5\n")
		}
	}
	for _, line := range slices.Clone(lines) {
		lines = slices.Insert(lines, 0, "-"+line)
	}
	shuffled := slices.Clone(lines)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(lines), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	got := partsOf(t, specOf(t, "record=line sort=key:number"), 1, strings.Join(shuffled[:40], ""), strings.Join(shuffled[40:], ""))
	i := 0
	for line := range strings.Lines(got[0]) {
		if line != lines[i] {
			t.Fatalf("line %d is %.9q, of %d bytes, want %.9q, of %d", i, line, len(line), lines[i], len(lines[i]))
		}
		i++
	}
	if i != len(lines) {
		t.Errorf("%d lines, want %d", i, len(lines))
	}
}

// A separator at which a number would fall apart is no separator of what is combined.
func TestSeparatorOfNumbers(t *testing.T) {
	for _, sep := range strings.Split("-0123456789", "") {
		for _, combine := range []string{"sum", "min", "max", "count"} {
			if _, err := meta.ParseStage("record=line key=1 sep=" + sep + " combine=" + combine); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "sep="+sep) {
				t.Errorf("combine=%s sep=%s: %v", combine, sep, err)
			}
		}
		specOf(t, "record=line key=1 sep="+sep+" combine=first")
	}
}

// Records are not sorted for a caller that has gone.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := specOf(t, "record=line sort=key")
	if _, err := s.Divide(ctx, []byte("b\na\n"), nil, 1, new(heap)); err != context.Canceled {
		t.Errorf("divided: %v", err)
	}
	if _, err := s.Merge(ctx, []record.Run{{Buffers: [][]byte{[]byte("a\n")}}}, nil); err != context.Canceled {
		t.Errorf("merged: %v", err)
	}
}

// A run that ends within a record is damaged, and nothing is made of it.
func TestDamagedRun(t *testing.T) {
	_, err := specOf(t, "record=fixed:2 sort=key").Merge(context.Background(), []record.Run{{Map: 7, Buffers: [][]byte{[]byte("aabbc")}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "what map 7 has of a part") {
		t.Error(err)
	}
}

// What parts hold of fixed maps is the same in every release, as parts of one job may be made
// by nodes of two. Nodes of a cluster are held against the same file.
func TestGolden(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("testdata/golden/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	maps := []string{read("map-0"), read("map-1"), read("map-2")}
	for row := range strings.Lines(read("parts")) {
		want, text, _ := strings.Cut(strings.TrimSpace(row), " ")
		of, s := maps, specOf(t, text)
		if s.Kind == meta.Fixed {
			of = []string{maps[0][:2000], maps[1][:2010]}
		}
		var parts []string
		if s.Ranges {
			for _, n := range []int{4, 40} { // of which the slices of a map are the fewest, and more
				slices := meta.Stage{Parts: uint64(n)}.Slices()
				parts = append(parts, rangesOf(t, s, n, int(slices), of...)...)
			}
		} else {
			parts = partsOf(t, s, 4, of...)
		}
		got := fmt.Sprintf("%016x", xxhash.Sum64String(strings.Join(parts, "|")))
		if got != want {
			t.Errorf("%s: parts hash to %s, not %s: an older node makes other bytes", text, got, want)
		}
	}
}
