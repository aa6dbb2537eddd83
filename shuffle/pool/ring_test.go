package pool_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/placement"
)

// With place=ring the nodes of all copies follow from the map's name. One that cannot be
// reached is passed over, and the writer keeps a map that no other node takes.
func TestCopiesByTheRing(t *testing.T) {
	s := newSite(t, 4)
	g := s.members[0].stage("s", "maps=8 parts=1 copies=2 place=ring")
	chosen := func(number uint64, nodes int) []string {
		return placement.Choose(placement.Key("j", "s", number), nodes, "", s.up(""))
	}
	for number := range uint64(4) {
		s.members[number].commit("s", number, 0, fmt.Sprint(number))
		if got := s.copies("s", number); !slices.Equal(got, chosen(number, 2)) {
			t.Errorf("map %d is on %v, not on %v", number, got, chosen(number, 2))
		}
	}
	order := chosen(4, 4)
	writer := s.members[slices.IndexFunc(s.members, func(m *member) bool { return m.id == order[3] })]
	for _, m := range s.members {
		if m.id == order[0] {
			s.fail(m)
		}
	}
	writer.commit("s", 4, 0, "4")
	if got, want := s.copies("s", 4), order[1:3]; !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("map 4 is on %v, and without node %s should be on %v", got, order[0], want)
	}
	if err := g.Specify(s.ctx, "maps=8 place=here"); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("place=here: %v", err)
	}
	alone := newSite(t, 2)
	alone.members[0].stage("s", "maps=8 parts=1 copies=1 place=ring")
	alone.fail(alone.members[1])
	for number := range uint64(8) {
		alone.members[0].commit("s", number, 0, "text")
		if got := alone.copies("s", number); !slices.Equal(got, []string{alone.members[0].id}) {
			t.Errorf("map %d, which no other node takes, is on %v", number, got)
		}
	}
}

// A writer that takes no copy of its own map, as the node that the ring has for it, is asked
// once, and the error says once why.
func TestTheWriterIsAskedOnce(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	g := m.stage("s", "maps=1 copies=1 place=ring ack=durable")
	m.write("s", meta.Attempt{}, "text")
	err := g.Attempts().Commit(s.ctx, meta.Attempt{}, false)
	if !errors.Is(err, meta.ErrNoSpace) || strings.Count(err.Error(), "this node has no disk") != 1 {
		t.Errorf("a map that is to be on a disk, where there is none: %v", err)
	}
}

func sorted(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

// What a guest writes is on other nodes alone, wherever the spec has it placed; while none takes
// it the attempt stays, and its rename says why.
func TestGuest(t *testing.T) {
	s := newSite(t, 3)
	m := s.members[2]
	m.stop()
	m.guest = true
	m.offer(0, false)
	m.start()
	for i, spec := range []string{"copies=1", "copies=1 place=ring", "copies=3"} {
		stage := fmt.Sprint("s", i)
		m.stage(stage, "maps=4 parts=1 "+spec)
		m.commit(stage, 0, 0, "text")
		got := s.copies(stage, 0)
		if slices.Contains(got, m.id) || len(got) != 1+i/2 {
			t.Errorf("%s: it is on %v", spec, got)
		}
		for _, other := range s.members[:2] {
			other.stop()
		}
		a := meta.Attempt{Map: 1}
		m.write(stage, a, "more")
		err := m.of(stage).Attempts().Commit(s.ctx, a, false)
		if !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "--pool-ram is 0") || !strings.Contains(err.Error(), "node 0000000000000001") {
			t.Errorf("%s: while no other node can be reached: %v", spec, err)
		}
		if len(m.left(stage)) == 0 {
			t.Errorf("%s: the attempt has not stayed", spec)
		}
		for _, other := range s.members[:2] {
			other.start()
		}
		if err := m.of(stage).Attempts().Commit(s.ctx, a, false); err != nil {
			t.Errorf("%s: when they can be again: %v", spec, err)
		}
		if got := m.left(stage); len(got) > 0 {
			t.Errorf("%s: the guest has %v left", spec, got)
		}
	}
}
