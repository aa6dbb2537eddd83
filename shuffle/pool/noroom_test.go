package pool_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/test/eventually"
)

// A node refuses a copy for which it has no room before anything of it has come, also what is
// sent of it while it is written, and the next node has it.
func TestCopiesThatHaveNoRoom(t *testing.T) {
	const size, maps = 6 << 20, 2 // copies go round: of two maps one is for the full node first
	for name, commit := range map[string]func(m *member, a meta.Attempt){
		"written at once": func(m *member, a meta.Attempt) { m.commit("s", a.Map, a.Number, string(make([]byte, size))) },
		"sent ahead":      (*member).commitAhead,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiteOf(t, 3, 4*size)
			m, full, roomy := s.members[0], s.members[1], s.members[2]
			m.stage("s", "maps=9 parts=1 copies=2")
			full.lay("s", meta.Attempt{Map: 8}.String(), make([]byte, 3*size+size/2))
			for i := range uint64(maps) {
				commit(m, meta.Attempt{Map: i})
				if got := s.copies("s", i); !slices.Equal(got, []string{m.id, roomy.id}) {
					t.Errorf("map %d has copies on %v", i, got)
				}
			}
			if sent := m.wire.Stats().BytesOut; sent < maps*size || sent > maps*size+size/8 {
				t.Errorf("for %d copies of %d bytes %d were sent", maps, size, sent)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(full.attempts("s")), "maps", "*")); len(left) > 0 || err != nil {
				t.Errorf("the full node has %v (%v)", left, err)
			}
		})
	}
}

// commitAhead writes an attempt of which something goes to other nodes before it is committed,
// if these take it.
func (m *member) commitAhead(a meta.Attempt) {
	t := m.site.t
	t.Helper()
	done, err := m.of("s").Attempts().Write(a)
	m.site.check(err)
	file, err := os.Create(filepath.Join(m.attempts("s"), a.String()))
	m.site.check(err)
	asked := m.wire.Stats().Requests
	m.site.write(file, 0, 6<<20)
	eventually.Within(t, time.Minute, "a node was asked to take what is written", func() bool { return m.wire.Stats().Requests > asked })
	m.site.check(file.Close())
	done()
	m.site.check(m.of("s").Attempts().Commit(m.site.ctx, a, false))
}

// A map that is too large for the room of a node keeps smaller ones from no copy there, and
// the log says that once.
func TestSmallerCopiesWhereOneHasNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		s := newSiteOf(t, 2, 4*size)
		m, full := s.members[0], s.members[1]
		m.stage("s", "maps=3 parts=1 copies=2")
		full.offer(0, false)
		full.lay("s", meta.Attempt{Map: 2, Number: 8}.String(), make([]byte, 3*size+size/2))
		for i, n := range []int{size, size, 1000} {
			m.commit("s", uint64(i), 0, strings.Repeat("x", n))
		}
		h := &heard{Handler: slog.DiscardHandler}
		m.stop()
		s.log = h
		m.start()
		full.offer(4*size, false)
		stop := m.follow()
		time.Sleep(time.Minute)
		stop()
		for i, want := range []int{1, 1, 2} {
			if got := len(s.copies("s", uint64(i))); got != want {
				t.Errorf("map %d has %d copies, want %d", i, got, want)
			}
		}
		if len(h.said) != 1 {
			t.Errorf("the log says %q", h.said)
		}
	})
}
