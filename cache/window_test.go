package cache_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
)

// A series whose batches are each of pieces of a few inputs, of a window that moves on
// through all inputs, as a shuffle of a window has them.
type shuffledOf struct {
	madeOf
	wide, pieces uint64
}

func (p *shuffledOf) traits() cache.Series {
	s := p.madeOf.traits()
	s.Steps = p.inputs.steps * 4
	return s
}

func (p *shuffledOf) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	r := rand.New(rand.NewPCG(1, step))
	inputs := make([]uint64, p.pieces)
	for i := range inputs {
		inputs[i] = min(step/4+r.Uint64N(p.wide), p.inputs.steps-1)
	}
	return copies(ctx, p.inputs, false, inputs, func(_ uint64, input io.ReaderAt) error {
		if input == nil {
			p.direct()
		}
		return nil
	})
}

// Inputs that a shuffle copies from stay until the window has passed them, beside all
// that is made ready ahead: in memory, or where that has room for a third of all inputs
// and the window is wider, on a disk too.
func TestInputsOfAWindow(t *testing.T) {
	for _, policy := range []string{"mckp", "interval"} {
		for _, room := range []struct {
			wide uint64
			disk int64
		}{{8, 0}, {24, 36 << 20}, {40, 48 << 20}} {
			t.Run(fmt.Sprintf("%s/%d", policy, room.wide), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cache.Config{RAMBytes: 16 << 20, Policy: policy}
					if room.disk > 0 {
						c.NVMe = []disks.Dir{{Path: t.TempDir(), Bytes: room.disk}}
					}
					k := newCache(t, c)
					direct := 0
					p := &shuffledOf{madeOf{each: 256 << 10, direct: func() { direct++ },
						inputs: &testSeries{id: 1, steps: 48, size: 1 << 20, noise: true, share: true, fail: slow(time.Millisecond)}}, room.wide, 12}
					for step := range p.traits().Steps {
						open(t, k, p, 0, step).Release()
						time.Sleep(10 * time.Millisecond)
					}
					awaitQuiet(k)
					fetched := 0
					for input := range p.inputs.steps {
						fetched += p.inputs.filled(0, input)
					}
					if most := int(p.inputs.steps) * 3 / 2; fetched > most {
						t.Errorf("%d fetches of %d inputs, want %d at most; %d pieces without", fetched, p.inputs.steps, most, direct)
					}
				})
			})
		}
	}
}
