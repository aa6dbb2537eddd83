package cache_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/meta"
)

// A plan whose batches are pieces of another one's.
type madeOf struct {
	cache  *cache.Cache
	parts  *testPlan
	each   int64 // bytes of a batch
	direct func()
}

func (p *madeOf) ID() [16]byte    { return [16]byte{255} }
func (p *madeOf) Dataset() string { return "test" }
func (p *madeOf) Key(rank, step uint64) cache.Key {
	return cache.Key{Plan: p.ID(), Rank: rank, Step: step}
}
func (p *madeOf) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Plan == p.ID()
}
func (p *madeOf) Next() cache.Plan             { return nil }
func (p *madeOf) Once() bool                   { return true }
func (p *madeOf) Shared() bool                 { return false }
func (p *madeOf) Ahead(uint64, uint64) bool    { return true }
func (p *madeOf) Steps() uint64                { return p.parts.steps * uint64(p.parts.size/p.each) }
func (p *madeOf) Size(rank, step uint64) int64 { return p.each }

func (p *madeOf) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	per := uint64(p.parts.size / p.each)
	part, off := step/per, int64(step%per)*p.each
	s, err := p.cache.Part(ctx, p.parts, 0, part, true)
	if errors.Is(err, meta.ErrNoSpace) {
		p.direct()
		copy(dst, p.parts.want(0, part)[off:])
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Release()
	_, err = s.ReadAt(dst, off)
	return err
}

// Four ranks take turns through batches that are made of four parts: each part
// is fetched once.
func TestParts(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20})
	p := &madeOf{cache: k, each: 1 << 20, direct: func() { t.Error("no room for a part") },
		parts: &testPlan{id: 1, steps: 4, size: 8 << 20, share: true}}
	var ranks sync.WaitGroup
	for rank := range uint64(4) {
		ranks.Go(func() {
			for step := rank; step < p.Steps(); step += 4 {
				s, err := k.Open(t.Context(), nil, p, rank, step)
				if err != nil {
					t.Errorf("open step %d: %v", step, err)
					return
				}
				checkPart(t, s, p, step)
				s.Release()
			}
		})
	}
	ranks.Wait()
	settle(k)
	for part := range p.parts.steps {
		if n := p.parts.filled(0, part); n != 1 {
			t.Errorf("part %d was fetched %d times", part, n)
		}
	}
}

func checkPart(t *testing.T, s *cache.Slab, p *madeOf, step uint64) {
	got := make([]byte, p.each)
	if _, err := s.ReadAt(got, 0); err != nil {
		t.Error(err)
	}
	per := uint64(p.parts.size / p.each)
	if !bytes.Equal(got, p.parts.want(0, step/per)[int64(step%per)*p.each:][:p.each]) {
		t.Errorf("step %d has other bytes", step)
	}
}

// Where parts find no room their bytes come from elsewhere: nobody waits for
// memory that somebody holds who waits as well.
func TestPartsWithoutRoom(t *testing.T) {
	for _, test := range []struct {
		name   string
		nvme   int64
		direct bool
	}{
		{"ram alone", 0, true},
		{"nvme beside it", 256 << 20, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := cache.Config{RAMBytes: 16 << 20}
			if test.nvme > 0 {
				config.NVMe = []disks.Dir{{Path: t.TempDir(), Bytes: test.nvme}}
			}
			k := newCache(t, config)
			var direct atomic.Int64
			p := &madeOf{cache: k, each: 1 << 20, direct: func() { direct.Add(1) },
				parts: &testPlan{id: 1, steps: 4, size: 20 << 20, share: true}}
			for step := range p.Steps() {
				s := open(t, k, p, 0, step)
				checkPart(t, s, p, step)
				s.Release()
			}
			if n := direct.Load(); (n > 0) != test.direct {
				t.Errorf("%d of %d batches were made without parts", n, p.Steps())
			}
		})
	}
}

// A part that cannot be fetched fails the batches that need it, each anew.
func TestPartFails(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20})
	broken := errors.New("no route")
	var works atomic.Bool
	p := &madeOf{cache: k, each: 1 << 20, parts: &testPlan{id: 1, steps: 1, size: 8 << 20, share: true,
		fail: func(_, _ uint64) error {
			if works.Load() {
				return nil
			}
			return broken
		}}}
	if _, err := k.Open(t.Context(), nil, p, 0, 0); !errors.Is(err, broken) {
		t.Errorf("open: %v", err)
	}
	settle(k)
	works.Store(true)
	s := open(t, k, p, 0, 0)
	checkPart(t, s, p, 0)
	s.Release()
}
