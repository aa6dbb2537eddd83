package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/placement"
	"rankfs/shuffle/pool"
)

// Room for copies is on nodes that have said so, and not on those that are drained, full or
// down; a node keeps what is written on it.
func TestNodesUp(t *testing.T) {
	nodes := []state.Node{
		{ID: "self", Host: "a", Up: true, Pool: 5, PoolFull: true},
		{ID: "roomy", Host: "b", Up: true, Pool: 7},
		{ID: "full", Host: "c", Up: true, Pool: 7, PoolFull: true},
		{ID: "none", Host: "d", Up: true},
		{ID: "down", Host: "e", Pool: 7},
		{ID: "drained", Host: "f", Up: true, Pool: 7, Drained: true},
		{ID: "beside", Host: "b", Up: true, Pool: 1},
	}
	want := []placement.Node{
		{ID: "self", Host: "a", Room: 5}, {ID: "roomy", Host: "b", Room: 7}, {ID: "full", Host: "c"}, {ID: "none", Host: "d"},
		{ID: "drained", Host: "f", Leaves: true}, {ID: "beside", Host: "b", Room: 1},
	}
	if got := pool.NodesUp(nodes, "self"); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := pool.NodesUp(nodes, "none")[3]; got.Room == 0 {
		t.Errorf("itself, of which the cluster does not know yet: %+v", got)
	}
	if got := pool.Hosts(nodes); got != 4 { // a, b, c, e
		t.Errorf("copies may be on %d hosts", got)
	}
}

// missing is how many copies of a stage are, as a node says.
func (m *member) missing(stage string) int {
	m.site.t.Helper()
	r, err := m.of(stage).Report()
	if err != nil {
		m.site.t.Fatal(err)
	}
	return r.Missing
}

// A node without a pool is not asked for a copy, nor is one missed for its sake. One that is
// full is not asked either, and has to take one when it has room.
func TestNodesThatTakeNoCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3)
		m := s.members[0]
		m.stage("s", "maps=2 parts=1 copies=3")
		s.members[1].offer(ram, true)
		s.members[2].offer(0, false)
		asked := 0
		s.hook(hooks{connect: func() { asked++ }})
		m.commit("s", 0, 0, "text")
		if got := s.copies("s", 0); asked > 0 || !slices.Equal(got, []string{m.id}) {
			t.Errorf("copies on %v; other nodes were asked %d times", got, asked)
		}
		if n := m.missing("s"); n != 1 {
			t.Errorf("%d copies are missing", n)
		}
		s.members[1].offer(ram, false)
		stop := m.follow()
		defer stop()
		time.Sleep(time.Minute)
		if got := s.copies("s", 0); !slices.Equal(got, []string{m.id, s.members[1].id}) || m.missing("s") != 0 {
			t.Errorf("copies on %v, %d are missing", got, m.missing("s"))
		}
	})
}

// A node is full when little of what it has is free, and has room again when there is more
// than a little.
func TestRoom(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	m.stage("s", "maps=9 parts=1 copies=1")
	room := func(was, want bool) {
		t.Helper()
		if bytes, full := m.Room(was); bytes != ram || full != want {
			t.Errorf("of %d bytes it has room, or is full: %v, want %v", bytes, full, want)
		}
	}
	room(false, false)
	room(true, false)
	for i := range uint64(29) { // of 32 such
		m.lay("s", meta.Attempt{Map: 0, Number: i}.String(), make([]byte, ram/32))
	}
	room(false, false)
	room(true, true)
	m.lay("s", meta.Attempt{Map: 0, Number: 30}.String(), make([]byte, ram/32))
	m.lay("s", meta.Attempt{Map: 0, Number: 31}.String(), make([]byte, ram/64))
	room(false, true)
}

// The cluster learns what a node has for the pool, and when it is full or has room again; also
// that it has nothing any more, of a daemon without a pool.
func TestOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1)
		m := s.members[0]
		m.stage("s", "maps=9 parts=1 copies=1")
		knows := func(bytes int64, full bool) {
			t.Helper()
			if is, _ := s.machine.Node(m.id); is.Pool != bytes || is.PoolFull != full {
				t.Errorf("the cluster knows of %d bytes, full %v, want %d, %v", is.Pool, is.PoolFull, bytes, full)
			}
		}
		m.offer(1<<20, false)
		m.Offer(t.Context())
		knows(ram, false)
		ctx, cancel := context.WithCancel(t.Context())
		var task sync.WaitGroup
		task.Go(func() { m.KeepOffering(ctx) })
		m.lay("s", meta.Attempt{Map: 0, Number: 1}.String(), make([]byte, ram-ram/32))
		time.Sleep(2 * time.Second)
		knows(ram, true)
		cancel()
		task.Wait()
		pool.New(pool.Config{State: s.machine, Cluster: m, Log: slog.New(s.log)}).Offer(t.Context())
		knows(0, false)
	})
}

// What a drained node has is copied to others, from itself where no other has it, until
// none is missing without it; then nothing is lost when it is removed.
func TestDrainedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 4)
		m, leaves := s.members[1], s.members[3]
		m.stage("s", "maps=6 parts=1 copies=2")
		m.stage("alone", "maps=1 parts=1 copies=1")
		want := ""
		for i := range uint64(6) {
			text := fmt.Sprint("text ", i)
			want += text
			leaves.commit("s", i, 0, text)
		}
		leaves.commit("alone", 0, 0, "a map of one copy")
		operator := state.Sender{Node: s.members[0].id}
		s.must(operator, &state.Drain{ID: leaves.id, Drained: true, Voters: state.Voters{Voters: []string{s.members[0].id}}})
		if a, b := m.missing("s"), m.missing("alone"); a != 6 || b != 1 {
			t.Errorf("as it is drained %d and %d copies are missing", a, b)
		}
		if got, err := m.part("alone", meta.Part{}); err != nil || got != "a map of one copy" {
			t.Errorf("what it alone has is %q, %v", got, err)
		}
		for _, one := range s.members {
			defer one.follow()()
		}
		time.Sleep(time.Minute)
		if a, b := m.missing("s"), m.missing("alone"); a != 0 || b != 0 {
			t.Errorf("when it is drained %d and %d copies are missing", a, b)
		}
		s.fail(leaves)
		s.must(operator, &state.Remove{ID: leaves.id, Voters: state.Voters{Voters: []string{s.members[0].id}}})
		if got, err := m.part("s", meta.Part{}); err != nil || got != want {
			t.Errorf("without it the part is %q, %v", got, err)
		}
		if got, err := m.part("alone", meta.Part{}); err != nil || got != "a map of one copy" {
			t.Errorf("without it what it alone had is %q, %v", got, err)
		}
	})
}

// Of a node that is drained what other nodes have no room for stays there, and that is known.
func TestDrainedWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		s := newSite(t, 3)
		leaves, other, next := s.members[2], s.members[0], s.members[1]
		leaves.stage("s", "maps=2 parts=1 copies=1")
		leaves.commit("s", 0, 0, strings.Repeat("x", size))
		other.commit("s", 1, 0, strings.Repeat("x", size))
		s.must(state.Sender{Node: other.id}, &state.Drain{ID: leaves.id, Drained: true, Voters: state.Voters{Voters: []string{other.id}}})
		fit := func(when string, want bool) {
			t.Helper()
			maps, bytes, fits := pool.Leaving(s.machine, s.machine.Nodes(), leaves.id)
			if maps != 1 || bytes != size || fits != want {
				t.Errorf("%s: %d maps, %d bytes, and they fit: %v, want %v", when, maps, bytes, fits, want)
			}
		}
		fit("there is room", true)
		next.offer(size/2, false)
		other.offer(size+size/2, false)
		fit("one is too small, and one has another map", false)
		other.offer(2*size, false)
		fit("one is large enough for both", true)
		other.offer(2*size, true)
		fit("that takes nothing for now", false)
	})
}
