package cache_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/meta"
)

// A series whose batches are pieces of another one's.
type madeOf struct {
	inputs *testSeries
	each   int64 // bytes of a batch
	direct func()
}

func (p *madeOf) ID() [16]byte { return [16]byte{255} }
func (p *madeOf) traits() cache.Series {
	return cache.Series{ID: p.ID(), Steps: p.steps(), Once: true, Ahead: true}
}
func (p *madeOf) Key(rank, step uint64) cache.Key {
	return cache.Key{Series: p.ID(), Rank: rank, Step: step}
}

func (p *madeOf) Known(rank, step uint64) (cache.Key, bool) { return p.Key(rank, step), true }
func (p *madeOf) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Series == p.ID()
}
func (p *madeOf) Next() *cache.Series          { return nil }
func (p *madeOf) steps() uint64                { return p.inputs.steps * uint64(p.inputs.size/p.each) }
func (p *madeOf) Size(rank, step uint64) int64 { return p.each }

func (p *madeOf) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	per := uint64(p.inputs.size / p.each)
	off := int64(step%per) * p.each
	return copies(ctx, p.inputs, true, []uint64{step / per}, func(number uint64, input io.ReaderAt) error {
		if input == nil {
			p.direct()
			p.inputs.write(dst, 0, number, off)
			return nil
		}
		_, err := input.ReadAt(dst, off)
		return err
	})
}

// copies is a fill that copies from inputs of a series, one after the other. There is no
// room for an input that is nil.
func copies(ctx context.Context, of series, inOrder bool, inputs []uint64, from func(number uint64, input io.ReaderAt) error) iter.Seq2[cache.Input, error] {
	return func(yield func(cache.Input, error) bool) {
		for _, number := range inputs {
			c := &copier{ctx: ctx, number: number, from: from}
			if !yield(cache.Input{Series: as(of), Step: number, InOrder: inOrder, Copier: c}, nil) {
				return
			}
			if c.err != nil {
				yield(cache.Input{}, c.err)
				return
			}
		}
	}
}

// A copier is such a fill, stopped at an input.
type copier struct {
	ctx    context.Context
	number uint64
	from   func(number uint64, input io.ReaderAt) error
	err    error
}

func (c *copier) Context() context.Context { return c.ctx }

func (c *copier) Copy(input io.ReaderAt, _ string, err error) {
	if err == nil || errors.Is(err, meta.ErrNoSpace) {
		err = c.from(c.number, input)
	}
	c.err = err
}

// Four ranks take turns through batches that are made of four inputs: each input
// is fetched once.
func TestInputs(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20})
	p := &madeOf{each: 1 << 20, direct: func() { t.Error("no room for an input") },
		inputs: &testSeries{id: 1, steps: 4, size: 8 << 20, share: true}}
	var ranks sync.WaitGroup
	for rank := range uint64(4) {
		ranks.Go(func() {
			for step := rank; step < p.steps(); step += 4 {
				s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
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
	awaitQuiet(k)
	for input := range p.inputs.steps {
		if n := p.inputs.filled(0, input); n != 1 {
			t.Errorf("input %d was fetched %d times", input, n)
		}
	}
}

func checkPart(t *testing.T, s *cache.Slab, p *madeOf, step uint64) {
	got := make([]byte, p.each)
	if _, err := s.ReadAt(got, 0); err != nil {
		t.Error(err)
	}
	per := uint64(p.inputs.size / p.each)
	if !p.inputs.has(got, 0, step/per, int64(step%per)*p.each) {
		t.Errorf("step %d has other bytes", step)
	}
}

// Where inputs find no room their bytes come from elsewhere: no fill waits for memory
// that is held by another fill that waits as well.
func TestInputsWithoutRoom(t *testing.T) {
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
			p := &madeOf{each: 1 << 20, direct: func() { direct.Add(1) },
				inputs: &testSeries{id: 1, steps: 4, size: 20 << 20, share: true}}
			for step := range p.steps() {
				s := open(t, k, p, 0, step)
				checkPart(t, s, p, step)
				s.Release()
			}
			if n := direct.Load(); (n > 0) != test.direct {
				t.Errorf("%d of %d batches were made without inputs", n, p.steps())
			}
		})
	}
}

// An input that cannot be fetched fails the batches that need it, each anew.
func TestInputFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{RAMBytes: 64 << 20})
		broken := errors.New("no route")
		var works atomic.Bool
		p := &madeOf{each: 1 << 20, inputs: &testSeries{id: 1, steps: 1, size: 8 << 20, share: true,
			fail: func(_, _ uint64) error {
				if works.Load() {
					return nil
				}
				return broken
			}}}
		if _, err := k.Open(t.Context(), nil, as(p), 0, 0, p.Key(0, 0)); !errors.Is(err, broken) {
			t.Errorf("open: %v", err)
		}
		awaitQuiet(k)
		works.Store(true)
		s := open(t, k, p, 0, 0)
		checkPart(t, s, p, 0)
		s.Release()
	})
}

// An input is whole: of one that is made of inputs itself no batch is made.
func TestInputOfInputs(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20})
	series := func(id byte, share bool) *testSeries { return &testSeries{id: id, steps: 1, size: 100, share: share} }
	whole := &inputSeries{testSeries: series(2, false), inputs: series(3, true)}
	open(t, k, whole, 0, 0).Release()
	nested := &inputSeries{testSeries: series(4, false), inputs: &inputSeries{testSeries: series(5, true), inputs: series(6, true)}}
	if _, err := k.Open(t.Context(), nil, as(nested), 0, 0, nested.Key(0, 0)); err == nil || !strings.Contains(err.Error(), "is made of inputs") {
		t.Errorf("a batch of an input of inputs: %v", err)
	}
}
