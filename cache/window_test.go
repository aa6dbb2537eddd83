package cache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/meta"
)

// A plan whose batches are each of pieces of a few parts, of a window that moves on
// through all parts, as a shuffle of a window has them.
type shuffledOf struct {
	madeOf
	wide, pieces uint64
}

func (p *shuffledOf) Steps() uint64 { return p.parts.steps * 4 }

func (p *shuffledOf) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	r := rand.New(rand.NewPCG(1, step))
	for range p.pieces {
		part := min(step/4+r.Uint64N(p.wide), p.parts.steps-1)
		s, err := p.cache.Part(ctx, p.parts, 0, part, false)
		if errors.Is(err, meta.ErrNoSpace) {
			p.direct()
			continue
		}
		if err != nil {
			return err
		}
		s.Release()
	}
	return nil
}

// Parts that a shuffle copies from stay until the window has passed them, beside all
// that is made ready ahead.
func TestPartsOfAWindow(t *testing.T) {
	for _, policy := range []string{"mckp", "interval"} {
		t.Run(policy, func(t *testing.T) {
			k := newCache(t, cache.Config{RAMBytes: 16 << 20, Policy: policy})
			direct := 0
			slow := func(uint64, uint64) error { time.Sleep(time.Millisecond); return nil }
			p := &shuffledOf{madeOf{cache: k, each: 256 << 10, direct: func() { direct++ },
				parts: &testPlan{id: 1, steps: 48, size: 1 << 20, share: true, fail: slow}}, 8, 12}
			for step := range p.Steps() {
				s, err := k.Open(t.Context(), nil, p, 0, step)
				if err != nil {
					t.Fatal(err)
				}
				s.Release()
			}
			settle(k)
			fetched := 0
			for part := range p.parts.steps {
				fetched += p.parts.filled(0, part)
			}
			if most := int(p.parts.steps) * 3 / 2; fetched > most {
				t.Errorf("%d fetches of %d parts, want %d at most; %d pieces without", fetched, p.parts.steps, most, direct)
			}
		})
	}
}
