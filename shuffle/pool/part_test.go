package pool_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// Whatever maps there are, and on whichever nodes: each node reads each part as the maps'
// pieces in the order of the maps, also of some maps, and each map whole.
func TestParts(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { randomStage(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomStage(t *testing.T, r *rand.Rand) {
	nodes, maps, parts, copies := 1+r.IntN(4), 1+r.IntN(12), 1+r.IntN(4), 1+r.IntN(3)
	s := newSite(t, nodes)
	s.members[0].stage("s", fmt.Sprintf("maps=%d parts=%d copies=%d", maps, parts, copies))
	pieces := make([][]string, maps)
	for _, i := range r.Perm(maps) {
		for p := range parts {
			n := []int{0, 0, 1, 7, 4096, 70_000}[r.IntN(6)]
			pieces[i] = append(pieces[i], strings.Repeat(string(rune('a'+(i+p)%26)), n))
		}
		s.members[r.IntN(nodes)].commit("s", uint64(i), 0, pieces[i]...)
		if want := min(copies, nodes); len(s.copies("s", uint64(i))) != want {
			t.Errorf("map %d has copies on %v, want %d", i, s.copies("s", uint64(i)), want)
		}
	}
	from := r.IntN(maps)
	for _, m := range s.members {
		for p := range parts {
			m.holdPart(pieces, meta.Part{Number: uint64(p)}, 0, maps-1)
			m.holdPart(pieces, meta.Part{Number: uint64(p), Ranged: true, From: uint64(from), To: uint64(maps - 1)}, from, maps-1)
		}
		for i := range maps {
			f, err := m.of("s").Maps().Open(s.ctx, uint64(i))
			if got, err := text(f, err); err != nil || got != strings.Join(pieces[i], "") {
				t.Errorf("map %d on node %s: %d bytes, %v", i, m.id, len(got), err)
			}
		}
		if left := m.left("s"); len(left) > 0 {
			t.Errorf("node %s has attempts still: %v", m.id, left)
		}
	}
}

// holdPart holds what a node reads of a part against the pieces of maps.
func (m *member) holdPart(pieces [][]string, p meta.Part, from, to int) {
	t := m.site.t
	t.Helper()
	var want []string
	for i := from; i <= to; i++ {
		want = append(want, pieces[i][p.Number])
	}
	if got, err := m.part("s", p); err != nil || got != strings.Join(want, "") {
		t.Errorf("%s on node %s: %d bytes, want %d: %v", p, m.id, len(got), len(strings.Join(want, "")), err)
	}
	if size, err := m.of("s").Parts().Size(m.site.ctx, p); err != nil || size != int64(len(strings.Join(want, ""))) {
		t.Errorf("%s on node %s has a size of %d: %v", p, m.id, size, err)
	}
	p.Offsets = true
	if got, err := m.part("s", p); err != nil || got != string(offsetsOf(want...)) {
		t.Errorf("%s on node %s: %x, %v", p, m.id, got, err)
	}
}

// A node that has not applied yet what the cluster agreed on, be it its own commit, learns
// it before it says that there is no such map.
func TestANodeThatIsBehind(t *testing.T) {
	s := newSite(t, 2)
	writer, reader := s.members[0], s.members[1]
	writer.stage("s", "maps=1 copies=1")
	writer.commit("s", 0, 0, "its bytes")
	writer.behind.Store(true)
	if got, err := reader.part("s", meta.Part{}); err != nil || got != "its bytes" {
		t.Errorf("%q, %v", got, err)
	}
}

// A part of no map is another one than that of the first map.
func TestPartsOfNoMap(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	g := m.stage("s", "maps=9 parts=1")
	by, name := state.Sender{Node: m.id}, state.StageName{Job: "j", Name: "s"}
	s.must(by, &state.SpecifyStage{StageName: name, Spec: "parts=1"})
	m.commit("s", 0, 0, "text")
	s.must(by, &state.SealStage{StageName: name})
	for _, c := range []struct {
		from, to uint64
		want     string
	}{{0, 0, "text"}, {5, 6, ""}, {0, 6, "text"}} {
		p := meta.Part{Ranged: true, From: c.from, To: c.to}
		if got, err := m.part("s", p); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
		if size, err := g.Parts().Size(s.ctx, p); err != nil || size != int64(len(c.want)) {
			t.Errorf("%s has %d bytes, %v", p, size, err)
		}
	}
}

// Where maps are on another node, that is asked once how long their pieces are. A map that
// no node has any more is missed all the same.
func TestPartsAreMeasuredOnce(t *testing.T) {
	s := newSite(t, 2)
	m, other := s.members[0], s.members[1]
	m.stage("s", "maps=1 parts=2 copies=1")
	other.commit("s", 0, 0, "te", "xt.")
	size := func() (int64, error) { return m.of("s").Parts().Size(s.ctx, meta.Part{Number: 1}) }
	if n, err := size(); err != nil || n != 3 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	other.stop()
	if n, err := size(); err != nil || n != 3 {
		t.Errorf("while the other node is down: %d bytes, %v", n, err)
	}
	s.loseCopies("s", 0, other.id)
	if n, err := size(); !errors.Is(err, meta.ErrLost) {
		t.Errorf("without a copy: %d bytes, %v", n, err)
	}
}

// Where all maps are here, the tables of these are read for some parts at a time, and for where
// their pieces begin not once more.
func TestPartsAreMeasuredTogether(t *testing.T) {
	const parts, together = 17, 8
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", fmt.Sprintf("maps=2 parts=%d copies=1", parts))
	var pieces [2][]string
	for i := range pieces {
		for part := range parts {
			pieces[i] = append(pieces[i], strings.Repeat("x", 1+i+10*part))
		}
		m.commit("s", uint64(i), 0, pieces[i]...)
	}
	size := func(p meta.Part) (int64, error) { return m.of("s").Parts().Size(s.ctx, p) }
	const first = 5
	if _, err := size(meta.Part{Number: first}); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(m.dir, "*", "*", "maps", "*.idx"))
	if err != nil || len(tables) != len(pieces) {
		t.Fatalf("tables: %v, %v", tables, err)
	}
	for _, path := range tables { // which is as though others were read
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte{0xff}, 16*parts)); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for part := first; part < first+together; part++ {
		p := meta.Part{Number: uint64(part)}
		if n, err := size(p); err != nil || n != int64(3+20*part) {
			t.Errorf("%s has %d bytes: %v", p, n, err)
		}
		p.Offsets = true
		if got, err := m.part("s", p); err != nil || got != string(offsetsOf(pieces[0][part], pieces[1][part])) {
			t.Errorf("%s: %x, %v", p, got, err)
		}
	}
	if n, err := size(meta.Part{Number: first + together}); err == nil {
		t.Errorf("the part after these has %d bytes, by tables that are not right", n)
	}
}

// A node that says nothing any more is asked no longer than until the cluster says that it
// is down, and than for a while; then another one that has a copy is. If that has none to give,
// the first one has time.
func TestSilentNode(t *testing.T) {
	for _, tt := range []struct {
		name    string
		noticed time.Duration // when the cluster knows
		speaks  time.Duration // when the node does, while the other one is down
		took    time.Duration
	}{
		{"noticed", 3 * time.Second, 0, 3 * time.Second},
		{"not noticed", 0, 0, 4 * time.Second},
		{"the other one is down", 0, 2 * time.Second, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 3)
				s.members[0].stage("s", "maps=1 parts=1 copies=2")
				s.members[0].commit("s", 0, 0, "text")
				has := s.copies("s", 0)
				reader := s.members[slices.IndexFunc(s.members, func(m *member) bool { return !slices.Contains(has, m.id) })]
				set := func(of map[string]bool, id string, is bool) {
					s.mu.Lock()
					defer s.mu.Unlock()
					of[id] = is
				}
				set(s.mu.silent, has[0], true)
				if tt.noticed > 0 {
					time.AfterFunc(tt.noticed, func() { s.loses(has[0]) })
				}
				if tt.speaks > 0 {
					set(s.mu.down, has[1], true)
					time.AfterFunc(tt.speaks, func() { set(s.mu.silent, has[0], false) })
				}
				begin := time.Now()
				if got, err := reader.part("s", meta.Part{}); err != nil || got != "text" {
					t.Errorf("the part is %q, %v", got, err)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("it took %v of the virtual clock", took)
				}
			})
		})
	}
}

// A commit does not wait until a power failure would leave it; a reader that is given bytes of it
// does.
func TestReadersWaitForTheDisk(t *testing.T) {
	s := newSite(t, 1)
	m, asked := s.members[0], 0
	m.stage("s", "maps=1 parts=2 copies=1")
	s.hook(hooks{lasts: func() error { asked++; return meta.ErrNoSpace }})
	m.commit("s", 0, 0, "te", "xt.")
	if asked > 0 {
		t.Error("the commit has waited")
	}
	if got, err := m.part("s", meta.Part{Number: 1}); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("a part: %q, %v", got, err)
	}
	if got, err := text(m.of("s").Maps().Open(s.ctx, 0)); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("a map: %q, %v", got, err)
	}
	s.hook(hooks{})
	if got, err := m.part("s", meta.Part{Number: 1}); err != nil || got != "xt." {
		t.Errorf("a part that lasts: %q, %v", got, err)
	}
	if got, err := text(m.of("s").Maps().Open(s.ctx, 0)); err != nil || got != "text." {
		t.Errorf("a map that lasts: %q, %v", got, err)
	}
}

// A map that was lost, and committed again on another node, is in the parts of a node that has
// heard of the loss alone.
func TestHealedElsewhere(t *testing.T) {
	for _, spec := range []string{"maps=2", "maps=2 record=line", "maps=2 record=line by=range"} {
		t.Run(spec, func(t *testing.T) {
			s := newSite(t, 2)
			here, there := s.members[0], s.members[1]
			here.stage("s", spec)
			commit := func(a meta.Attempt, text string) {
				here.lay("s", a.String(), []byte(text))
				if err := here.of("s").Attempts().Commit(t.Context(), a, false); err != nil {
					t.Fatal(err)
				}
			}
			commit(meta.Attempt{Map: 0}, "a\n")
			commit(meta.Attempt{Map: 1}, "b\n")
			s.loseCopies("s", 1, here.id, there.id)
			lost := s.machine.Commits(there.of("s").Number())
			if got, err := there.part("s", meta.Part{}); !errors.Is(err, meta.ErrLost) {
				t.Errorf("the part is %q, %v", got, err)
			}
			commit(meta.Attempt{Map: 1, Number: 1}, "b\n")
			there.knows.Store(&lost)
			if got, err := there.part("s", meta.Part{}); got != "a\nb\n" || err != nil {
				t.Errorf("healed, the part is %q, %v", got, err)
			}
			there.knows.Store(&lost)
			if n, err := there.of("s").Parts().Size(t.Context(), meta.Part{Number: 0, Offsets: true}); n != 24 || err != nil {
				t.Errorf("healed, its offsets have %d bytes, %v", n, err)
			}
		})
	}
}
