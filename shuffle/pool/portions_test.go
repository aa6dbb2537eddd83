package pool_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// Maps of which a part has more than is merged at once: each 170 KiB of lines, whose
// keys are in other maps, too.
const (
	littleRAM  = 4 << 20 // of a node
	largeMaps  = 6
	largeLines = 10 << 10
)

func largeMap(r *rand.Rand, number int) string {
	var b strings.Builder
	for i := range largeLines {
		fmt.Fprintf(&b, "%07d\t%d\n", r.IntN(largeLines), 10_000_000+i*largeMaps+number)
	}
	return b.String()
}

func keyOf(line string) string { word, _, _ := strings.Cut(line, "\t"); return word }

// inKeyOrder are the lines of maps sorted by their keys.
func inKeyOrder(maps []string) (lines []string) {
	for _, m := range maps {
		lines = slices.AppendSeq(lines, strings.Lines(m))
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	return lines
}

// A part of which other nodes have more than is merged at once is merged in portions, and is
// the same, whatever its records are; so are its records' places, and some bytes of it.
func TestLargeParts(t *testing.T) {
	var maps, sized, long []string
	r := rand.New(rand.NewPCG(5, 5))
	for i := range largeMaps {
		maps = append(maps, largeMap(r, i))
		var b, l strings.Builder
		for line := range strings.Lines(maps[i]) {
			b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(line))))
			b.WriteString(line)
		}
		for k := range 8 { // some of them longer than a portion, by far or by a little
			key := fmt.Sprintf("%d%d", k*7%8, i)
			l.WriteString(key + strings.Repeat("x", []int{5, 10_000, 17_000, 60_000}[r.IntN(4)]) + "\n")
		}
		sized, long = append(sized, b.String()), append(long, l.String())
	}
	sorted := inKeyOrder(maps)
	first := slices.CompactFunc(slices.Clone(sorted), func(a, b string) bool { return keyOf(a) == keyOf(b) })
	var prefixed, summed []string
	for _, line := range sorted {
		prefixed = append(prefixed, string(binary.LittleEndian.AppendUint32(nil, uint32(len(line))))+line)
	}
	all := sums(strings.Join(sorted, ""))
	for _, line := range first {
		summed = append(summed, fmt.Sprintf("%s\t%d\n", keyOf(line), all[keyOf(line)]))
	}
	for _, c := range []struct {
		spec string
		maps []string
		want []string // its records
	}{
		{"record=line key=1 sort=key", maps, sorted},
		{"record=line key=1 by=range", maps, sorted},
		{"record=line key=1 combine=first", maps, first},
		{"record=line key=1 by=range combine=sum", maps, summed},
		{"record=fixed:17 key=1-7 sort=key", maps, sorted},
		{"record=sizes key=1-7 sort=key", sized, prefixed},
		{"record=sizes", sized, slices.Collect(recordsOf(sized))},
		{"record=line sort=key", long, slices.Sorted(strings.Lines(strings.Join(long, "")))},
	} {
		t.Run(c.spec, func(t *testing.T) {
			s := newSiteOf(t, 3, littleRAM)
			parts := 1
			if strings.Contains(c.spec, "by=range") {
				parts = 2
			}
			s.members[0].stage("s", fmt.Sprintf("maps=%d parts=%d copies=1 %s", largeMaps, parts, c.spec))
			for i, m := range c.maps {
				if err := s.members[i%2].commitText("s", uint64(i), m); err != nil {
					t.Fatal(err)
				}
			}
			m, got := s.members[2], []string(nil)
			for p := range uint64(parts) {
				got = append(got, m.holdLarge(p)...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("parts have %d records, want %d in their order", len(got), len(c.want))
			}
		})
	}
}

func recordsOf(maps []string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, m := range maps {
			for b := []byte(m); len(b) > 0; {
				n := 4 + binary.LittleEndian.Uint32(b)
				if !yield(string(b[:n])) {
					return
				}
				b = b[n:]
			}
		}
	}
}

// holdLarge holds what a node says in several ways of a part of the stage s against each
// other, and returns its records.
func (m *member) holdLarge(number uint64) (records []string) {
	t := m.site.t
	t.Helper()
	name := meta.Part{Number: number}
	text, err := m.part("s", name)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 1<<16 {
		t.Fatalf("the part has %d bytes only", len(text))
	}
	name.Offsets = true
	offsets, err := m.part("s", name)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64([]byte(offsets[8*i:]))) }
	for i := range len(offsets)/8 - 1 {
		records = append(records, text[at(i):at(i+1)])
	}
	sealed, err := m.Sealed(m.site.ctx, "j", "s")
	if err != nil {
		t.Fatal(err)
	}
	p, err := sealed.Part(m.site.ctx, number)
	if err != nil {
		t.Fatal(err)
	}
	var some record.Windows
	for off := int64(100); off < p.Size()-300; off += p.Size() / 5 {
		some = append(some, record.Window{Off: off, To: make([]byte, 200)})
	}
	if err := p.Read(m.site.ctx, some); err != nil {
		t.Error(err)
	}
	for _, w := range some {
		if string(w.To) != text[w.Off:w.Off+200] {
			t.Errorf("200 bytes from byte %d on are others", w.Off)
		}
	}
	n := 0
	err = p.Records(m.site.ctx, func(off, length int64, count uint64) error {
		for range count {
			if n >= len(records) || off != at(n) || length != int64(len(records[n])) {
				return fmt.Errorf("record %d is at byte %d, and has %d bytes", n, off, length)
			}
			off += length
			n++
		}
		return nil
	})
	if err != nil || n != len(records) {
		t.Errorf("%d records, want %d: %v", n, len(records), err)
	}
	return records
}

// Of a large part no reader is given a byte of a copy that is damaged, wherever it is, nor is
// the copy used again; and a node that cannot be reached is one that another has copies for.
func TestDamageInLargeParts(t *testing.T) {
	var maps []string
	r := rand.New(rand.NewPCG(6, 6))
	for i := range largeMaps {
		maps = append(maps, largeMap(r, i))
	}
	for _, c := range []struct {
		name    string
		reader  int // node 0 has the damaged copies itself
		damage  func(b []byte)
		refuses bool
	}{
		{"a key in the middle", 2, func(b []byte) { b[len(b)/2/18*18+3] ^= 1 }, false},
		{"the last number", 2, func(b []byte) { b[len(b)-2] ^= 1 }, false},
		{"a line's end", 2, func(b []byte) { b[bytes.IndexByte(b, '\n')] = ' ' }, false},
		{"all line ends", 2, func(b []byte) { copy(b, bytes.ReplaceAll(b, []byte("\n"), []byte(" "))) }, false},
		{"a number that is none", 2, func(b []byte) { b[bytes.IndexByte(b, '\t')+1] = 'x' }, false},
		{"where it is merged", 0, func(b []byte) { b[len(b)/2] ^= 1 }, false},
		{"a file that ends in the middle", 2, nil, false},
		{"what the other node has, too", 2, func(b []byte) { b[len(b)/2] ^= 1 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSiteOf(t, 3, littleRAM)
			s.members[2].offer(littleRAM, true)
			s.members[0].stage("s", fmt.Sprintf("maps=%d parts=1 copies=2 record=line key=1 combine=sum", largeMaps))
			for i, m := range maps {
				if err := s.members[0].commitText("s", uint64(i), m); err != nil {
					t.Fatal(err)
				}
			}
			damage := func(m *member) {
				files, err := filepath.Glob(filepath.Join(m.dir, "*/*/maps/00000[13].*[0-9a-f]"))
				if err != nil || len(files) != 2 {
					t.Fatalf("maps are %v, %v", files, err)
				}
				for _, name := range files {
					if c.damage != nil {
						damageFile(t, name, c.damage)
					} else if err := os.Truncate(name, 64<<10); err != nil {
						t.Fatal(err)
					}
				}
			}
			damage(s.members[0])
			if c.refuses {
				damage(s.members[1])
			}
			got, err := s.members[c.reader].part("s", meta.Part{})
			switch {
			case c.refuses:
				if !errors.Is(err, meta.ErrLost) && !errors.Is(err, meta.ErrCorrupt) {
					t.Errorf("of a map whose copies are all damaged: %d bytes, %v", len(got), err)
				}
			case err != nil:
				t.Error(err)
			case fmt.Sprint(sums(got)) != fmt.Sprint(sums(strings.Join(maps, ""))):
				t.Error("the part has other sums")
			}
			for _, number := range []uint64{1, 3} {
				if has := s.copies("s", number); !c.refuses && slices.Contains(has, s.members[0].id) {
					t.Errorf("map %d is still said to be on %v", number, has)
				}
			}
		})
	}
}

func damageFile(t *testing.T, name string, damage func(b []byte)) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damage(b)
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// A node that has died, and is not known to have, costs a part nothing but time.
func TestLargePartOfADeadNode(t *testing.T) {
	s := newSiteOf(t, 3, littleRAM)
	s.members[2].offer(littleRAM, true)
	s.members[0].stage("s", fmt.Sprintf("maps=%d parts=1 copies=2 record=line key=1 sort=key", largeMaps))
	var maps []string
	for i := range largeMaps {
		maps = append(maps, largeMap(rand.New(rand.NewPCG(7, uint64(i))), i))
		if err := s.members[i%2].commitText("s", uint64(i), maps[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.fail(s.members[0])
	if got, err := s.members[2].part("s", meta.Part{}); err != nil || got != strings.Join(inKeyOrder(maps), "") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
