package pool_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/test/eventually"
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

// What an attempt has reserved others cannot have, on any node: until it is committed, which
// counts, or removed. What it did not get in the end is free. A daemon that follows another goes
// on from what that had reserved.
func TestReservations(t *testing.T) {
	s := newSite(t, 2)
	m, elsewhere := s.members[0], s.members[1]
	if _, err := m.MakeJob(s.ctx, "j", 7, 7, 100); err != nil {
		t.Fatal(err)
	}
	m.stage("s", "maps=9 copies=1")
	reserve := func(m *member, number uint64, bytes int64, want error) (undo func()) {
		t.Helper()
		a := meta.Attempt{Map: number}
		m.lay("s", a.String(), []byte("text"))
		undo, err := m.of("s").Attempts().Reserve(s.ctx, a.String(), bytes)
		if !errors.Is(err, want) {
			t.Errorf("map %d reserves %d bytes: %v, want %v", number, bytes, err, want)
		}
		return undo
	}
	left := func(m *member, want int64) {
		t.Helper()
		if err := m.of("s").Attempts().MayGrow(want); err != nil {
			t.Errorf("%d bytes should be left: %v", want, err)
		}
		if err := m.of("s").Attempts().MayGrow(want + 1); !errors.Is(err, meta.ErrQuota) {
			t.Errorf("no more than %d bytes should be left: %v", want, err)
		}
	}
	commit := func(m *member, number uint64, want error) {
		t.Helper()
		if err := m.of("s").Attempts().Commit(s.ctx, meta.Attempt{Map: number}, false); !errors.Is(err, want) {
			t.Errorf("commit of map %d: %v, want %v", number, err, want)
		}
	}
	reserve(m, 0, 50, nil)
	left(m, 50)
	left(elsewhere, 50)
	reserve(m, 1, 51, meta.ErrQuota)
	reserve(elsewhere, 2, 51, meta.ErrQuota)
	reserve(m, 1, 40, nil)()
	left(m, 50)
	reserve(m, 1, 40, nil)
	reserve(m, 1, 50, nil)
	reserve(m, 1, 10, nil)() // which takes nothing back
	left(m, 0)
	left(elsewhere, 0)
	reserve(elsewhere, 2, 1, meta.ErrQuota)
	commit(elsewhere, 2, meta.ErrQuota)
	if err := m.of("s").Attempts().Remove(meta.Attempt{Map: 1}, meta.Attempt{Map: 1}.String()); err != nil {
		t.Fatal(err)
	}
	left(m, 50)
	commit(m, 0, nil)
	left(m, 96)
	stop := m.follow()
	for _, node := range s.members { // it is told what is free
		eventually.Within(t, time.Minute, "no node has reserved anything", func() bool {
			return node.of("s").Attempts().MayGrow(96) == nil
		})
	}
	stop()
	commit(elsewhere, 2, nil)
	reserve(m, 3, 60, nil)
	m.lay("s", meta.Attempt{Map: 3}.String(), make([]byte, 20))
	m.stop()
	m.start()
	left(elsewhere, 32)
	defer m.follow()()
	eventually.Within(t, time.Minute, "the attempt that is there has its bytes reserved alone", func() bool {
		return elsewhere.of("s").Attempts().MayGrow(33) == nil
	})
	reserve(elsewhere, 4, 80, meta.ErrQuota)
	commit(m, 3, nil)
	left(elsewhere, 72)
}

// Several nodes that reserve and commit at once get all of a quota, and no more.
func TestReservedByMany(t *testing.T) {
	s := newSite(t, 3)
	m := s.members[0]
	const maps, size = 60, 100
	if _, err := m.MakeJob(s.ctx, "j", 7, 7, maps*size); err != nil {
		t.Fatal(err)
	}
	m.stage("s", fmt.Sprintf("maps=%d copies=1", 2*maps))
	var work sync.WaitGroup
	for i := range maps {
		work.Go(func() {
			m, a := s.members[i%len(s.members)], meta.Attempt{Map: uint64(i)}
			m.lay("s", a.String(), make([]byte, size))
			if i%2 == 0 {
				if _, err := m.of("s").Attempts().Reserve(s.ctx, a.String(), size); err != nil {
					t.Errorf("map %d reserves: %v", i, err)
				}
			}
			if err := m.of("s").Attempts().Commit(s.ctx, a, false); err != nil {
				t.Errorf("commit of map %d: %v", i, err)
			}
		})
	}
	work.Wait()
	for i, m := range s.members {
		a := meta.Attempt{Map: uint64(maps + i)}
		m.lay("s", a.String(), []byte("x"))
		if err := m.of("s").Attempts().Commit(s.ctx, a, false); !errors.Is(err, meta.ErrQuota) {
			t.Errorf("one more: %v", err)
		}
	}
}
