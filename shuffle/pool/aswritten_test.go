package pool_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// inOrder are lines whose keys rise, and the same in another order.
func inOrder(n int) (rising, other string) {
	var lines []string
	for i := range n {
		lines = append(lines, string(rune('a'+i/26))+string(rune('a'+i%26))+"\t1\n")
	}
	rising = strings.Join(lines, "")
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
	return rising, strings.Join(lines, "")
}

// mapFile is the file of a map that a node has in memory.
func (m *member) mapFile(stage, number string) string {
	m.site.t.Helper()
	dir := filepath.Join(filepath.Dir(m.attempts(stage)), "maps", number+".*[0-9a-f]")
	files, err := filepath.Glob(dir)
	if err != nil || len(files) != 1 {
		m.site.t.Fatalf("files of map %s: %v, %v", number, files, err)
	}
	return files[0]
}

// A map whose records stand as they are to stand is not written once more: it stays the file
// that its attempt was. All that can be seen of it is as of the same records in another order,
// on each node.
func TestMapsInOrderStayAsWritten(t *testing.T) {
	rising, other := inOrder(100)
	for _, test := range []struct {
		spec, text string
		stays      bool
	}{
		{"parts=3 by=range", rising, true},
		{"parts=3 by=range", rising[:len(rising)-1], false},
		{"parts=3 by=range", other, false},
		{"parts=1 sort=key", rising, true},
		{"parts=1 sort=key", other, false},
		{"parts=1", rising, true},
		{"parts=3 sort=key", rising, false},
	} {
		s := newSite(t, 2)
		m := s.members[0]
		m.stage("s", "maps=1 copies=2 record=line key=1 "+test.spec)
		a := meta.Attempt{}
		m.lay("s", a.String(), []byte(test.text))
		was, err := os.Stat(filepath.Join(m.attempts("s"), a.String()))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
			t.Fatal(err)
		}
		is, err := os.Stat(m.mapFile("s", "000000"))
		if err != nil || os.SameFile(is, was) != test.stays {
			t.Errorf("%s of %.6q: is it the file that was written? want %v (%v)", test.spec, test.text, test.stays, err)
		}
		c, _ := s.machine.Commit(m.of("s").Number(), 0)
		for _, m := range s.members {
			got, err := text(m.of("s").Maps().Open(s.ctx, 0))
			if want := strings.TrimSuffix(rising, "\n"); !strings.Contains(test.spec, "parts=3 sort=key") && !strings.HasPrefix(got, want) || int64(len(got)) != c.Size || err != nil {
				t.Errorf("%s of %.6q: node %s opens a map of %d bytes, want %d: %v", test.spec, test.text, m.id, len(got), c.Size, err)
			}
		}
		same := m.stage("same", "maps=1 copies=1 record=line key=1 "+test.spec)
		if strings.Contains(test.spec, "by=range") || strings.Contains(test.spec, "sort") {
			if err := m.commitText("same", 0, other); err != nil {
				t.Fatal(err)
			}
			if sorted, _ := s.machine.Commit(same.Number(), 0); sorted.Sum != c.Sum || sorted.Size != c.Size {
				t.Errorf("%s: a map in order has the sum %x, and its records in another order %x", test.spec, c.Sum, sorted.Sum)
			}
		}
	}
}

// Such a map is found by the next daemon, is copied to other nodes when copies are missing, and
// is given up when any of it is damaged, be it of what was written or of what comes after that.
func TestMapsAsWrittenAreKept(t *testing.T) {
	rising, _ := inOrder(100)
	begin := func(t *testing.T) (*site, *member) {
		t.Helper()
		s := newSite(t, 2)
		m := s.members[0]
		m.stage("s", "maps=1 parts=3 copies=2 record=line key=1 by=range")
		if err := m.commitText("s", 0, rising); err != nil {
			t.Fatal(err)
		}
		return s, m
	}
	holds := func(t *testing.T, s *site) {
		t.Helper()
		for _, m := range s.members {
			s.holdRangesOf(m, rising)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s, m := begin(t)
		m.stop()
		m.start()
		stop := m.follow()
		time.Sleep(time.Minute)
		stop()
		if n := len(s.copies("s", 0)); n != 2 || len(agreed[*state.KeepCopy](s)) > 0 {
			t.Errorf("after a daemon has begun anew there are %d copies", n)
		}
		holds(t, s)
	})
	synctest.Test(t, func(t *testing.T) {
		s, m := begin(t)
		other := s.members[1]
		s.loseCopies("s", 0, other.id)
		stop := m.follow()
		time.Sleep(time.Minute)
		stop()
		if n := len(s.copies("s", 0)); n != 2 {
			t.Errorf("after one copy was lost there are %d", n)
		}
		holds(t, s)
	})
	for _, damaged := range []string{"", ".idx"} {
		s, m := begin(t)
		name := m.mapFile("s", "000000") + damaged
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte{b[len(b)-66] ^ 1}, int64(len(b)-66)); err != nil {
			t.Fatal(err)
		}
		file.Close()
		holds(t, s)
		if n := s.copies("s", 0); len(n) != 1 || n[0] == m.id {
			t.Errorf("damaged %q: copies are on %v", damaged, n)
		}
	}
}

func (s *site) holdRangesOf(m *member, text string) {
	s.t.Helper()
	all := ""
	for p := range uint64(3) {
		got, err := m.part("s", meta.Part{Number: p})
		if err != nil {
			s.t.Fatal(err)
		}
		all += got
	}
	if all != text {
		s.t.Errorf("node %s reads %d bytes, want %d", m.id, len(all), len(text))
	}
}

// An attempt that is in order, and whose rename has an unknown outcome, stays as it was
// written, and is committed by another rename.
func TestUnknownOutcomeOfMapsInOrder(t *testing.T) {
	rising, _ := inOrder(100)
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=1 parts=3 copies=1 record=line key=1 by=range")
	s.silent(false)
	if err := m.commitText("s", 0, rising); err == nil {
		t.Fatal("it is committed")
	}
	b, err := os.ReadFile(filepath.Join(m.attempts("s"), meta.Attempt{}.String()))
	if err != nil || string(b) != rising {
		t.Errorf("the attempt is %d bytes, want %d: %v", len(b), len(rising), err)
	}
	s.hook(hooks{})
	if err := m.of("s").Attempts().Commit(s.ctx, meta.Attempt{}, false); err != nil {
		t.Fatal(err)
	}
	s.holdRangesOf(m, rising)
}
