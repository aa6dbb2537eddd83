package cache_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/meta"
)

var (
	soak = flag.Duration("soak", 2*time.Second, "how long to do at random what can be done to a cache")
	seed = flag.Uint64("seed", 0, "of what is done; zero: any")
)

// Whatever is done to a cache, and in whatever order: each byte is right, no
// budget is exceeded, and at the end nothing is left.
func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	config := cache.Config{
		RAMBytes: 48 << 20, NVMeFloor: disks.Floor{},
		NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 40 << 20}, {Path: t.TempDir(), Bytes: 20 << 20}},
	}
	s := &soaking{t: t, k: newCache(t, config), config: config, until: time.Now().Add(*soak)}
	for i := range byte(4) {
		s.series = append(s.series, &testSeries{id: i + 1, steps: 40 << i, size: 300_000 << i, once: i == 3, last: i == 2})
	}
	s.series = append(s.series, &testSeries{id: 5, steps: 400, size: 9_000})
	if *seed%2 == 0 {
		s.k.KeepFiles(10)
	}
	var tasks sync.WaitGroup
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(*seed, i))
		do := []func(*rand.Rand){s.job, s.job, s.job, s.stray, s.stray, s.warm, s.discard, s.settings}[i]
		tasks.Go(func() {
			for time.Now().Before(s.until) && !t.Failed() {
				do(r)
			}
		})
	}
	tasks.Go(s.watch)
	tasks.Wait()
}

type soaking struct {
	t      *testing.T
	k      *cache.Cache
	config cache.Config
	series []*testSeries
	until  time.Time
}

func (s *soaking) any(r *rand.Rand) *testSeries { return s.series[r.IntN(len(s.series))] }

// open reads a batch. There may be no room for it while others hold theirs.
func (s *soaking) open(r *rand.Rand, p *testSeries, rank, step uint64) {
	slab, err := s.k.Open(s.t.Context(), nil, as(p), rank, step, p.Key(rank, step))
	if err != nil {
		s.t.Errorf("series %d rank %d step %d: %v", p.id, rank, step, err)
		return
	}
	check(s.t, slab, p, rank, step)
	time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
	slab.Release()
}

// job reads part of an epoch, at times with a jump.
func (s *soaking) job(r *rand.Rand) {
	p, rank := s.any(r), r.Uint64N(3)
	for step := r.Uint64N(p.steps); step < p.steps && time.Now().Before(s.until); step++ {
		s.open(r, p, rank, step)
		if r.IntN(50) == 0 {
			return
		}
	}
}

func (s *soaking) stray(r *rand.Rand) {
	p := s.any(r)
	s.open(r, p, r.Uint64N(3), r.Uint64N(p.steps))
}

func (s *soaking) warm(r *rand.Rand) {
	p := s.any(r)
	err := s.k.Prepare(s.t.Context(), as(p), r.Uint64N(3), r.Uint64N(p.steps))
	if err != nil && !errors.Is(err, meta.ErrNoSpace) {
		s.t.Errorf("prepare: %v", err)
	}
	time.Sleep(time.Millisecond)
}

func (s *soaking) discard(r *rand.Rand) {
	p := s.any(r)
	s.k.Discard(p.Key(r.Uint64N(3), r.Uint64N(p.steps)))
	time.Sleep(time.Millisecond)
}

func (s *soaking) settings(r *rand.Rand) {
	time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	switch r.IntN(3) {
	case 0:
		if err := s.k.SetPolicy(policy.Names()[r.IntN(len(policy.Names()))]); err != nil {
			s.t.Error(err)
		}
	case 1:
		s.k.Pin(s.any(r).ID(), policy.Level(r.IntN(int(policy.Levels))))
	case 2:
		s.k.Allow(s.config.RAMBytes/4*r.Int64N(5), r.IntN(3) > 0)
	}
}

// watch holds the budgets, a hundred times a second.
func (s *soaking) watch() {
	for time.Now().Before(s.until) && !s.t.Failed() {
		now := s.k.Stats()
		if now.RAM.Used > s.config.RAMBytes || now.Packed.Used > now.RAM.Used {
			s.t.Errorf("memory: %d bytes, %d of them packed, of %d", now.RAM.Used, now.Packed.Used, s.config.RAMBytes)
		}
		for i, d := range now.NVMe {
			if d.Used > s.config.NVMe[i].Bytes {
				s.t.Errorf("disk %d: %d bytes of %d", i, d.Used, s.config.NVMe[i].Bytes)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
