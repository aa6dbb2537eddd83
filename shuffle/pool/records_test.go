package pool_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// commitText writes an attempt without offsets, and commits it.
func (m *member) commitText(stage string, number uint64, text string) error {
	m.site.t.Helper()
	a := meta.Attempt{Map: number}
	m.lay(stage, a.String(), []byte(text))
	return m.of(stage).Attempts().Commit(m.site.ctx, a, false)
}

// words are maps of lines of a word and a number; one of them is empty, and one has a last
// line without a newline.
func words(r *rand.Rand) (all []string) {
	for i := range 5 {
		var b strings.Builder
		for range i * 200 {
			fmt.Fprintf(&b, "w%d\t%d\n", r.IntN(300), r.IntN(100)-50)
		}
		all = append(all, b.String())
	}
	return append(all, "w7\t1\nlast\t5")
}

// Maps that the pool divides make parts that are sorted, on every node, and still so when
// the node that wrote them is lost. Of all records each is in one part.
func TestSortedParts(t *testing.T) {
	s := newSite(t, 3)
	s.members[0].stage("s", "maps=6 parts=3 copies=2 record=line sort=key")
	var want []string
	for i, m := range words(rand.New(rand.NewPCG(1, 1))) {
		if err := s.members[i%2].commitText("s", uint64(i), m); err != nil {
			t.Fatal(err)
		}
		if m != "" {
			want = append(want, strings.Split(strings.TrimSuffix(m, "\n"), "\n")...)
		}
	}
	slices.Sort(want)
	first := s.holdSorted(s.members, nil, want)
	s.fail(s.members[0])
	s.holdSorted(s.members[1:], first, want)
}

// holdSorted holds the parts of the stage s against lines, and against what they were.
func (s *site) holdSorted(members []*member, was, lines []string) (parts []string) {
	s.t.Helper()
	for _, m := range members {
		parts = nil
		var all []string
		for p := range 3 {
			name := meta.Part{Number: uint64(p)}
			got, err := m.part("s", name)
			if err != nil {
				s.t.Fatal(err)
			}
			records := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if !slices.IsSorted(records) {
				s.t.Errorf("%s on node %s is not sorted", name, m.id)
			}
			if size, err := m.of("s").Parts().Size(s.ctx, name); err != nil || size != int64(len(got)) {
				s.t.Errorf("%s on node %s has %d bytes, and a size of %d: %v", name, m.id, len(got), size, err)
			}
			m.holdOffsets(name, got)
			parts, all = append(parts, got), append(all, records...)
		}
		if slices.Sort(all); !slices.Equal(all, lines) {
			s.t.Errorf("node %s reads %d lines, want %d", m.id, len(all), len(lines))
		}
		if was != nil && !slices.Equal(parts, was) {
			s.t.Errorf("node %s reads other parts than were read before", m.id)
		}
	}
	return parts
}

// Parts that are ranges of keys follow on one another, on every node, also of some maps.
func TestRangedParts(t *testing.T) {
	s := newSite(t, 3)
	s.members[0].stage("s", "maps=6 parts=3 copies=2 record=line key=1 by=range")
	all := words(rand.New(rand.NewPCG(3, 3)))
	for i, m := range all {
		if err := s.members[i%2].commitText("s", uint64(i), m); err != nil {
			t.Fatal(err)
		}
	}
	s.holdRanges(s.members, all)
	s.fail(s.members[0])
	s.holdRanges(s.members[1:], all)
}

// Samples are taken once for all parts of a stage on a node: one that was damaged since is in
// no way of the parts that are read then.
func TestSamplesAreTakenOnce(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=6 parts=3 copies=1 record=line key=1 by=range")
	all := words(rand.New(rand.NewPCG(4, 4)))
	for i, text := range all {
		if err := m.commitText("s", uint64(i), text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.part("s", meta.Part{Number: 0})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(m.dir, "*/*/maps/000004.*[0-9a-f]"))
	if err != nil || len(files) != 1 {
		t.Fatalf("maps are %v, %v", files, err)
	}
	damageFile(t, files[0], func(b []byte) { b[len(b)-1] ^= 1 })
	for number := range uint64(2) {
		text, err := m.part("s", meta.Part{Number: number + 1})
		if err != nil {
			t.Fatal(err)
		}
		got += text
	}
	if n := strings.Count(strings.Join(all, ""), "\n") + 1; strings.Count(got, "\n") != n {
		t.Errorf("parts have %d lines, want %d", strings.Count(got, "\n"), n)
	}
}

// Samples of more maps than memory is lent for are looked at by and by, and the parts are those
// that they are for a node with more memory.
func TestSamplesOfManyMaps(t *testing.T) {
	const maps, parts, lent = 60, 300, 16 // lent: maps whose samples have room
	read := func(ram int64) (got []string, requests uint64) {
		s := newSiteOf(t, 2, ram)
		m, reader := s.members[0], s.members[1]
		m.stage("s", fmt.Sprintf("maps=%d parts=%d copies=1 record=line key=1 by=range", maps, parts))
		r := rand.New(rand.NewPCG(5, 5))
		for i := range uint64(maps) {
			var b strings.Builder
			for range 50 {
				fmt.Fprintf(&b, "%06d\t%d\n", r.IntN(1e6), i)
			}
			if err := m.commitText("s", i, b.String()); err != nil {
				t.Fatal(err)
			}
		}
		before := reader.wire.Stats().Requests
		if _, err := reader.of("s").State(s.ctx); err != nil { // which weighs parts by their samples
			t.Fatal(err)
		}
		requests = reader.wire.Stats().Requests - before
		for p := uint64(0); p < parts; p += parts / 5 {
			text, err := reader.part("s", meta.Part{Number: p})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		return got, requests
	}
	want, _ := read(256 << 20)
	got, requests := read(ram)
	if !slices.Equal(got, want) {
		t.Errorf("with less memory the parts are others")
	}
	if all := slices.Collect(strings.Lines(strings.Join(got, ""))); len(all) < 5 || !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(a[:6], b[:6]) }) {
		t.Errorf("five of %d parts have %d lines, or not in order", parts, len(all))
	}
	if least := uint64(2 * maps / lent); requests < least {
		t.Errorf("the samples of %d maps came by %d requests; room is for those of %d", maps, requests, lent)
	}
}

// Of a stage without maps parts that are ranges of keys are empty.
func TestRangesOfNoMaps(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	if err := m.stage("s", "parts=2 record=line by=range").Seal(s.ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := m.part("s", meta.Part{Number: 1}); err != nil || got != "" {
		t.Errorf("a part is %q, %v", got, err)
	}
}

// What parts that are ranges of keys weigh is said about, once the stage is sealed: those of
// one key that many records have are heavy, and one that none is left for has nothing.
func TestWeightsOfRanges(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	m.stage("s", "maps=2 parts=4 record=line key=1 by=range")
	many := strings.Repeat("m\t123456\n", 3000)
	commit := func(number uint64) {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "%c%04d\t\n", "az"[number], i)
		}
		if err := s.members[number].commitText("s", number, b.String()+many); err != nil {
			t.Fatal(err)
		}
	}
	commit(0)
	if text, err := m.of("s").State(s.ctx); err != nil || !strings.Contains(string(text), "parts      not known: with by=range that is known once the stage is sealed\n") {
		t.Errorf("while the stage is open: %v\n%s", err, text)
	}
	commit(1)
	for _, m := range s.members {
		text, err := m.of("s").State(s.ctx)
		_, line, is := strings.Cut(string(text), "\nparts      about ")
		line, _, _ = strings.Cut(line, "\n")
		if err != nil || !is {
			t.Fatalf("%v\n%s", err, text)
		}
		for i, one := range strings.Split(line, ", ") {
			var number, said int64
			if _, err := fmt.Sscan(one, &number, &said); err != nil || number != int64(i) {
				t.Fatalf("%s: %v", line, err)
			}
			n, err := m.of("s").Parts().Size(s.ctx, meta.Part{Number: uint64(i)})
			if err != nil || said < n-n/4-2000 || said > n+n/4+2000 {
				t.Errorf("part %d has %d bytes, and is said to have about %d: %v", i, n, said, err)
			}
		}
	}
}

func (s *site) holdRanges(members []*member, all []string) {
	s.t.Helper()
	for _, m := range members {
		for _, name := range []meta.Part{{}, {Ranged: true, From: 2, To: 4}} {
			maps := all
			if name.Ranged {
				maps = all[2:5]
			}
			var got, want []string
			for name.Number = range 3 {
				text, err := m.part("s", name)
				if err != nil {
					s.t.Fatal(err)
				}
				if size, err := m.of("s").Parts().Size(s.ctx, name); err != nil || size != int64(len(text)) {
					s.t.Errorf("%s on node %s has %d bytes, and a size of %d: %v", name, m.id, len(text), size, err)
				}
				m.holdOffsets(name, text)
				got = append(got, strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })...)
			}
			for _, one := range maps {
				want = append(want, strings.FieldsFunc(one, func(c rune) bool { return c == '\n' })...)
			}
			slices.SortStableFunc(want, func(a, b string) int {
				key := func(line string) string { word, _, _ := strings.Cut(line, "\t"); return word }
				return strings.Compare(key(a), key(b))
			})
			if !slices.Equal(got, want) {
				s.t.Errorf("parts like %s on node %s have %d lines, want %d in their order", name, m.id, len(got), len(want))
			}
		}
	}
}

// holdOffsets holds what a node says of where lines begin against these.
func (m *member) holdOffsets(p meta.Part, lines string) {
	t := m.site.t
	t.Helper()
	p.Offsets = true
	got, err := m.part("s", p)
	if want := string(offsetsOf(slices.Collect(strings.Lines(lines))...)); err != nil || got != want {
		t.Errorf("%s on node %s has %d bytes, want %d: %v", p, m.id, len(got), len(want), err)
	}
	if size, err := m.of("s").Parts().Size(m.site.ctx, p); err != nil || size != int64(len(got)) {
		t.Errorf("%s on node %s has a size of %d, want %d: %v", p, m.id, size, len(got), err)
	}
}

// A map in memory is merged where it is, once it was looked at: of one that has changed the
// copy of another node is.
func TestDamagedMapsAreNotMerged(t *testing.T) {
	for _, by := range []string{"key=1 sort=key", "key=1 by=range"} {
		s := newSite(t, 2)
		m := s.members[0]
		m.stage("s", "maps=2 parts=1 copies=2 record=line "+by)
		for i, text := range []string{"b\t1\nd\t1\n", "a\t1\nc\t1\n"} {
			if err := m.commitText("s", uint64(i), text); err != nil {
				t.Fatal(err)
			}
		}
		want := "a\t1\nb\t1\nc\t1\nd\t1\n"
		if n, err := m.of("s").Parts().Size(s.ctx, meta.Part{}); err != nil || n != int64(len(want)) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		maps, err := filepath.Glob(filepath.Join(m.dir, "*/*/maps/000001.*[0-9a-f]"))
		if err != nil || len(maps) != 1 {
			t.Fatalf("maps are %v, %v", maps, err)
		}
		file, err := os.OpenFile(maps[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte("b"), 0); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := m.part("s", meta.Part{}); err != nil || got != want {
			t.Errorf("%s: the part is %q, want %q: %v", by, got, want, err)
		}
	}
}

// Sums of parts are those of all lines, also of some maps alone.
func TestCombinedParts(t *testing.T) {
	s := newSite(t, 2)
	s.members[0].stage("s", "maps=6 parts=3 copies=1 record=line key=1 combine=sum")
	all := words(rand.New(rand.NewPCG(2, 2)))
	for i, m := range all {
		if err := s.members[i%2].commitText("s", uint64(i), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.members {
		m.holdSums(all, false, 0, 5)
		m.holdSums(all, true, 2, 4)
	}
}

// A sum to which only all maps together come can be beyond 64 bits: then the part that would
// have it says so, and the others are read.
func TestSumBeyondAllMaps(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=2 parts=4 record=line key=1 combine=sum")
	for i := range uint64(2) {
		if err := m.commitText("s", i, "a\t9223372036854775807\n"); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for p := range uint64(4) {
		got, err := m.part("s", meta.Part{Number: p})
		if errors.Is(err, unix.EOVERFLOW) && strings.Contains(err.Error(), `the sum for key "a"`) {
			refused++
		} else if err != nil || got != "" {
			t.Errorf("part %d is %q: %v", p, got, err)
		}
	}
	if refused != 1 {
		t.Errorf("%d parts are refused", refused)
	}
}

func (m *member) holdSums(all []string, ranged bool, from, to uint64) {
	t := m.site.t
	t.Helper()
	want := sums(strings.Join(all[from:to+1], ""))
	got := make(map[string]int)
	for p := range 3 {
		text, err := m.part("s", meta.Part{Number: uint64(p), Ranged: ranged, From: from, To: to})
		if err != nil {
			t.Fatal(err)
		}
		m.holdOffsets(meta.Part{Number: uint64(p), Ranged: ranged, From: from, To: to}, text)
		of := sums(text)
		if n := strings.Count(text, "\n"); n != len(of) {
			t.Errorf("part %d on node %s has %d lines of %d words", p, m.id, n, len(of))
		}
		maps.Copy(got, of)
	}
	if !maps.Equal(got, want) {
		t.Errorf("maps %d to %d on node %s: sums of %d words, want %d: %v", from, to, m.id, len(got), len(want), got)
	}
}

func sums(text string) map[string]int {
	all := make(map[string]int)
	for line := range strings.Lines(text) {
		word, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, _ := strconv.Atoi(number)
		all[word] += n
	}
	return all
}

// An attempt whose records cannot be divided stays, and its writer learns which record it is.
// A map that its writer has divided is sorted in each part.
func TestDividedOrNot(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=2 parts=2 record=line key=1 combine=sum")
	err := m.commitText("s", 0, "a\t1\nb\tone\n")
	if !errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), `.map-000000.0 of stage j/s: record 1, at byte 4: field 2 is "one"`) {
		t.Errorf("a word where a number should be: %v", err)
	}
	if left := m.left("s"); !slices.Equal(left, []string{".map-000000.0"}) {
		t.Errorf("left are %v", left)
	}
	if err := m.commitText("s", 0, "a\t1\n"); err != nil {
		t.Errorf("the same attempt, mended: %v", err)
	}
	m.commit("s", 1, 0, "c\t2\nb\t1\nc\t1\n", "a\t5\n")
	var parts [2]string
	for p := range parts {
		if parts[p], err = m.part("s", meta.Part{Number: uint64(p)}); err != nil {
			t.Fatal(err)
		}
	}
	divided := [2]string{"b\t1\nc\t3\n", "a\t5\n"}
	with := func(p int) [2]string { // where the pool has put the record of map 0
		is := divided
		is[p] = map[int]string{0: "a\t1\nb\t1\nc\t3\n", 1: "a\t6\n"}[p]
		return is
	}
	if parts != with(0) && parts != with(1) {
		t.Errorf("parts are %q", parts)
	}
}

// Where memory is short a commit says what it takes; its attempt stays, and nothing else.
func TestNoRoomToDivide(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=1 parts=2 record=line sort=key")
	err := m.commitText("s", 0, strings.Repeat("1123456789abcde\n0123456789abcde\n", ram/2/32))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "--pool-ram") {
		t.Errorf("%v", err)
	}
	if left := m.left("s"); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if err := m.commitText("s", 0, strings.Repeat("1123456789abcde\n0123456789abcde\n", ram/8/32)); err != nil {
		t.Errorf("a smaller one: %v", err)
	}
}

// An attempt with holes takes more to be read than it took to be written.
func TestNoRoomForHoles(t *testing.T) {
	s := newSite(t, 1)
	m, a := s.members[0], meta.Attempt{}
	m.stage("s", "maps=1 parts=2 record=line")
	m.lay("s", a.String(), []byte("a\n"))
	if err := os.Truncate(filepath.Join(m.attempts("s"), a.String()), 4*ram); err != nil {
		t.Fatal(err)
	}
	if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("%v", err)
	}
}

// What it takes to divide a map is given back when that is done: many maps, one after the
// other, need no more room than one.
func TestDividingGivesMemoryBack(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "parts=2 record=line sort=key")
	for i := range uint64(10) {
		if err := m.commitText("s", i, strings.Repeat("1123456789abcde\n0123456789abcde\n", 3*ram/64/32)); err != nil {
			t.Fatal(err)
		}
	}
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(mapped), m.dir); n > 0 {
		t.Errorf("%d files of maps that are committed are still mapped", n)
	}
}
