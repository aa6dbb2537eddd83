package pool_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/state"
)

// endangered has the stage s with so many maps of a member, of which each has one copy less than
// it wants.
func (s *site) endangered(maps, copies int) *member {
	s.t.Helper()
	m := s.members[0]
	m.stage("s", fmt.Sprintf("maps=%d parts=1 copies=%d", maps, copies))
	for i := range uint64(maps) {
		m.commit("s", i, 0, fmt.Sprint("text ", i))
		s.loseCopies("s", i, s.copies("s", i)[1])
	}
	return m
}

// While maps get new copies a node has its link half of the time for others.
func TestRepairLeavesHalfOfALink(t *testing.T) {
	const maps, each = 4, time.Second
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3)
		m := s.endangered(maps, 2)
		var came []time.Time
		s.hook(hooks{ask: func(c state.Command) error {
			if _, ok := c.(*state.KeepCopy); ok {
				time.Sleep(each) // a copy takes as long
				came = append(came, time.Now())
			}
			return nil
		}})
		stop := m.follow()
		time.Sleep(time.Minute)
		stop()
		if len(came) != maps {
			t.Fatalf("%d copies were made of %d", len(came), maps)
		}
		for i := range came[1:] {
			if gap := came[i+1].Sub(came[i]); gap < 2*each {
				t.Errorf("copy %d came %v after the one before, of %v each", i+1, gap, each)
			}
		}
	})
}

// A slowLink is one by which a node gets so many bytes in a second from each of the others. The
// lock guards all but to whom it is.
type slowLink struct {
	to string

	mu          sync.Mutex
	rate        int // 0: it is not slow yet
	first, last time.Time
	busy        time.Duration // with data since then, of all that send
}

type slowConn struct {
	net.Conn
	link *slowLink
}

// Write takes its time for data, and none for what asks.
func (c slowConn) Write(b []byte) (int, error) {
	l := c.link
	l.mu.Lock()
	rate := l.rate
	l.mu.Unlock()
	if rate == 0 || len(b) < 4096 {
		return c.Conn.Write(b)
	}
	begun, takes := time.Now(), time.Duration(len(b))*time.Second/time.Duration(rate)
	time.Sleep(takes)
	l.mu.Lock()
	if l.first.IsZero() {
		l.first = begun
	}
	l.last, l.busy = time.Now(), l.busy+takes
	l.mu.Unlock()
	return c.Conn.Write(b)
}

// However many nodes make copies again on one node, it has its link half of the time for others.
func TestRepairLeavesHalfOfAReceiversLink(t *testing.T) {
	const senders, maps, size = 3, 4, 256 << 10
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, senders+1)
		link := &slowLink{to: s.members[senders].id}
		s.mu.Lock()
		s.mu.slow = link
		s.mu.Unlock()
		for _, m := range s.members[:senders] {
			m.offer(0, false) // it takes no copies
		}
		for i, m := range s.members[:senders] {
			name := fmt.Sprint("s", i)
			m.stage(name, fmt.Sprintf("maps=%d parts=1 copies=2", maps))
			for n := range uint64(maps) {
				m.commit(name, n, 0, strings.Repeat(fmt.Sprintf("%d%03d", i, n), size/4))
				s.loseCopies(name, n, link.to)
			}
		}
		link.mu.Lock()
		link.rate = size
		link.mu.Unlock()
		for _, m := range s.members[:senders] {
			defer m.follow()()
		}
		time.Sleep(3 * time.Minute)
		for i := range senders {
			for n := range uint64(maps) {
				if on := s.copies(fmt.Sprint("s", i), n); len(on) != 2 {
					t.Errorf("map %d of stage %d has copies on %v", n, i, on)
				}
			}
		}
		link.mu.Lock()
		defer link.mu.Unlock()
		each := link.busy / (senders * maps)
		if took := link.last.Sub(link.first); each < time.Second || 2*link.busy > took+each+each/100 {
			t.Errorf("for %d copies, %v each, the link was busy %v of %v", senders*maps, each, link.busy, took)
		}
	})
}

// A node that is lost while maps get new copies may endanger others more than those.
func TestAnotherLossWhileCopiesAreMade(t *testing.T) {
	const maps = 8
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 5)
		m := s.endangered(maps, 3)
		second := s.copies("s", maps-1)[1]
		var order []uint64
		s.hook(hooks{ask: func(c state.Command) error {
			k, ok := c.(*state.KeepCopy)
			if !ok || !k.Has {
				return nil
			}
			if order = append(order, k.Map); len(order) == 1 {
				s.mu.Lock()
				s.mu.lost[second] = true
				s.mu.Unlock()
			}
			return nil
		}})
		stop := m.follow()
		time.Sleep(5 * time.Minute)
		stop()
		var endangered []uint64 // which have one copy left after that
		for i := range uint64(maps) {
			c, _ := s.machine.Commit(m.of("s").Number(), i)
			if slices.Contains(c.Nodes, second) && i != order[0] {
				endangered = append(endangered, i)
			}
		}
		if len(endangered) == 0 || len(endangered) == maps-1 {
			t.Fatalf("%d of %d maps have a copy on a node", len(endangered), maps)
		}
		next := slices.Compact(order[1 : 1+2*len(endangered)]) // each gets two
		slices.Sort(next)
		if !slices.Equal(next, endangered) {
			t.Errorf("maps got copies in the order %v; after the second loss %v had one left", order, endangered)
		}
	})
}

// A copy that was made for a node that was away goes when that is back, if what is there is what
// it was: else none goes.
func TestACopyTooMany(t *testing.T) {
	const maps = 4
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprint("damaged=", damaged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 3)
				m, goes := s.members[0], s.members[1]
				m.stage("s", fmt.Sprintf("maps=%d parts=1 copies=2", maps))
				before := make([][]string, maps)
				for i := range uint64(maps) {
					m.commit("s", i, 0, fmt.Sprint("text ", i))
					before[i] = s.copies("s", i)
				}
				for _, one := range s.members {
					defer one.follow()()
				}
				away := func(is bool) {
					s.mu.Lock()
					s.mu.lost[goes.id] = is
					s.mu.Unlock()
					s.must(state.Sender{Node: m.id}, &state.UseJob{Node: m.id, Name: "j", Open: is}) // nodes look
					time.Sleep(time.Minute)
				}
				away(true)
				had := 0
				for i := range uint64(maps) {
					if !slices.Contains(before[i], goes.id) {
						continue
					}
					had++
					if got := s.copies("s", i); len(got) != 3 {
						t.Errorf("while the node is away map %d is on %v", i, got)
					}
					if damaged {
						if err := os.WriteFile(goes.mapFile("s", fmt.Sprintf("%06d", i)), []byte(fmt.Sprint("texT ", i)), 0600); err != nil {
							t.Error(err)
						}
					}
				}
				away(false)
				given := 0
				for _, c := range agreed[*state.KeepCopy](s) {
					if c.Spare {
						given++
					}
				}
				if want := map[bool]int{false: had}[damaged]; had == 0 || given != want {
					t.Errorf("%d copies were given up, want %d of %d", given, want, had)
				}
				for i := range uint64(maps) {
					want := before[i]
					if damaged {
						want = []string{m.id, s.members[2].id}
					}
					if got := s.copies("s", i); !slices.Equal(got, want) {
						t.Errorf("when it is back map %d is on %v, and was on %v", i, got, before[i])
					}
				}
				if left := s.members[2].files(); !damaged && len(left) > 4+2*2*(maps-had) {
					t.Errorf("of %d maps that are there the node has %v", maps-had, left)
				}
			})
		})
	}
}
