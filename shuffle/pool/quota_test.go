package pool_test

import (
	"errors"
	"testing"

	"rankfs/meta"
)

// A job with a quota: what a reservation may have is what is left for each copy, a commit
// over it is refused and its attempt stays, and what is removed makes room.
func TestQuota(t *testing.T) {
	s := newSite(t, 2)
	m := s.members[0]
	if _, err := m.MakeJob(s.ctx, "j", 7, 7, 100); err != nil {
		t.Fatal(err)
	}
	g := m.stage("s", "maps=3 copies=2")
	grows := func(bytes int64, want error) {
		t.Helper()
		if err := m.of("s").Attempts().MayGrow(bytes); !errors.Is(err, want) {
			t.Errorf("%d bytes more: %v, want %v", bytes, err, want)
		}
	}
	grows(50, nil)
	grows(51, meta.ErrQuota)
	m.commit("s", 0, 0, "thirty bytes of the first map..")
	grows(19, nil)
	grows(20, meta.ErrQuota)
	m.write("s", meta.Attempt{Map: 1}, "twenty bytes of more")
	if err := g.Attempts().Commit(s.ctx, meta.Attempt{Map: 1}, false); !errors.Is(err, meta.ErrQuota) {
		t.Errorf("commit of more than the quota: %v", err)
	}
	if left := m.left("s"); len(left) != 2 {
		t.Errorf("of the attempt that was refused there are %v", left)
	}
	if err := g.Maps().Remove(s.ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := g.Attempts().Commit(s.ctx, meta.Attempt{Map: 1}, false); err != nil {
		t.Errorf("with room for it: %v", err)
	}
	grows(30, nil)
	grows(31, meta.ErrQuota)
	j, err := s.members[1].Job(s.ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	for quota, most := range map[int64]int64{102: 31, 10: -15, 0: 1 << 40} { // on another node
		if err := j.SetQuota(s.ctx, quota); err != nil {
			t.Fatal(err)
		}
		if err := g.Attempts().MayGrow(most); err != nil {
			t.Errorf("with a quota of %d: %v", quota, err)
		}
		if err := g.Attempts().MayGrow(most + 1); quota > 0 && !errors.Is(err, meta.ErrQuota) {
			t.Errorf("with a quota of %d: %v", quota, err)
		}
	}
}

// What an attempt has reserved others cannot have, on its node: until it is committed, which
// counts, or removed. What it did not get in the end is free.
func TestReservations(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	if _, err := m.MakeJob(s.ctx, "j", 7, 7, 100); err != nil {
		t.Fatal(err)
	}
	g := m.stage("s", "maps=9 copies=1")
	reserve := func(number uint64, bytes int64, want error) (undo func()) {
		t.Helper()
		a := meta.Attempt{Map: number}
		m.lay("s", a.String(), []byte("text"))
		undo, err := g.Attempts().Reserve(a.String(), bytes)
		if !errors.Is(err, want) {
			t.Errorf("map %d reserves %d bytes: %v, want %v", number, bytes, err, want)
		}
		return undo
	}
	left := func(want int64) {
		t.Helper()
		if err := g.Attempts().MayGrow(want); err != nil {
			t.Errorf("%d bytes should be left: %v", want, err)
		}
		if err := g.Attempts().MayGrow(want + 1); !errors.Is(err, meta.ErrQuota) {
			t.Errorf("no more than %d bytes should be left: %v", want, err)
		}
	}
	reserve(0, 50, nil)
	left(50)
	reserve(1, 51, meta.ErrQuota)
	reserve(1, 40, nil)()
	left(50)
	reserve(1, 40, nil)
	reserve(1, 50, nil)
	reserve(1, 10, nil)() // which takes nothing back
	left(0)
	if err := g.Attempts().Remove(meta.Attempt{Map: 1}, meta.Attempt{Map: 1}.String()); err != nil {
		t.Fatal(err)
	}
	left(50)
	if err := g.Attempts().Commit(s.ctx, meta.Attempt{}, false); err != nil {
		t.Fatal(err)
	}
	left(96)
}
