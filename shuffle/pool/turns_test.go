package pool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/test/eventually"
)

// Each node has as many of the copies as each other, from the first map of each on: of few
// large ones no node is given several while another has none. What is committed by a daemon
// that is new is no worse.
func TestCopiesInTurn(t *testing.T) {
	const nodes = 4
	s := newSite(t, nodes)
	s.members[0].stage("s", "maps=64 parts=1 copies=2")
	has, number := make(map[string]int), uint64(0)
	for round := range 6 {
		if round == 3 {
			for _, m := range s.members {
				m.stop()
				m.start()
			}
		}
		for _, m := range s.members {
			m.commit("s", number, 0, fmt.Sprint(number))
			for _, id := range s.copies("s", number) {
				has[id]++
			}
			number++
		}
		for id, n := range has {
			if n != 2*(round+1) {
				t.Errorf("after %d maps of each node %s has %d copies", round+1, id, n)
			}
		}
	}
}

// What went ahead is the copy, and counts as given: the next one is another node's. One that
// takes nothing is passed over.
func TestTurnsOfWhatGoesAhead(t *testing.T) {
	const mib = 1 << 20
	s := newSiteOf(t, 4, 64*mib)
	m := s.members[0]
	m.stage("s", "maps=3 copies=2")
	var on []string
	for number := range uint64(3) {
		a := meta.Attempt{Map: number}
		done, err := m.of("s").Attempts().Write(a)
		s.check(err)
		file, err := os.Create(filepath.Join(m.attempts("s"), a.String()))
		s.check(err)
		s.write(file, 0, 5*mib)
		to := ""
		eventually.Within(t, time.Minute, "what is written is on another node", func() bool {
			for _, other := range s.members[1:] {
				all, err := filepath.Glob(filepath.Join(filepath.Dir(other.attempts("s")), "maps", "*.tail.*"))
				s.check(err)
				if len(all) == 1 {
					info, err := os.Stat(all[0])
					to = other.id
					return err == nil && info.Size() == 5*mib
				}
			}
			return false
		})
		s.check(file.Close())
		done()
		s.check(m.of("s").Attempts().Commit(s.ctx, a, false))
		if got := s.copies("s", number); !slices.Equal(got, []string{m.id, to}) {
			t.Errorf("map %d went ahead to %s, and is on %v", number, to, got)
		}
		if slices.Contains(on, to) {
			t.Errorf("node %s has a second copy, where others have none: %v", to, on)
		}
		on = append(on, to)
	}
}
