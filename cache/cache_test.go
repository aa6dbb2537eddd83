package cache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// A plan whose bytes say which batch they belong to, all through.
type testPlan struct {
	id      byte
	steps   uint64
	size    int64
	once    bool
	share   bool
	noise   bool      // batches are random bytes, which nothing packs
	quarter bool      // a quarter of each is, all through
	last    bool      // no epoch follows
	next    *testPlan // that does; nil: the same again
	fail    func(rank, step uint64) error
	gate    chan struct{} // if set, a fill takes a token

	mu    sync.Mutex
	fills map[[2]uint64]int
}

func (p *testPlan) ID() [16]byte    { return [16]byte{p.id} }
func (p *testPlan) Dataset() string { return "test" }
func (p *testPlan) Key(rank, step uint64) cache.Key {
	return cache.Key{Plan: p.ID(), Rank: rank, Step: step}
}
func (p *testPlan) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Plan == p.ID()
}
func (p *testPlan) Next() cache.Plan {
	switch {
	case p.last:
		return nil
	case p.next != nil:
		return p.next
	}
	return p
}
func (p *testPlan) Once() bool                   { return p.once }
func (p *testPlan) Shared() bool                 { return p.share }
func (p *testPlan) Ahead(uint64, uint64) bool    { return true }
func (p *testPlan) Steps() uint64                { return p.steps }
func (p *testPlan) Size(rank, step uint64) int64 { return p.size }
func (p *testPlan) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return cache.Whole(p.fill(ctx, rank, step, dst))
}

func (p *testPlan) fill(ctx context.Context, rank, step uint64, dst []byte) error {
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	if p.fills == nil {
		p.fills = make(map[[2]uint64]int)
	}
	p.fills[[2]uint64{rank, step}]++
	p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(rank, step); err != nil {
			return err
		}
	}
	copy(dst, p.want(rank, step))
	return nil
}

func (p *testPlan) filled(rank, step uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fills[[2]uint64{rank, step}]
}

// want is the batch: its plan, rank and step over and over, or noise. It is made
// by copies alone, which the race detector does not slow down.
func (p *testPlan) want(rank, step uint64) []byte {
	if p.noise {
		from := (rank*7919 + step*104729) % uint64(len(noise())/2)
		return noise()[from:][:p.size]
	}
	b := make([]byte, p.size)
	word := binary.LittleEndian.AppendUint64(nil, uint64(p.id))
	word = binary.LittleEndian.AppendUint64(word, rank)
	word = binary.LittleEndian.AppendUint64(word, step)
	for n := copy(b, word); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	if p.quarter {
		from := noise()[(rank*7919+step*104729)%uint64(len(noise())/2):]
		for at := 0; at < len(b); at += 4096 {
			copy(b[at:min(at+1024, len(b))], from[at:])
		}
	}
	return b
}

// noise is 2 MiB that nothing packs.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

func newCache(t testing.TB, c cache.Config) *cache.Cache {
	t.Helper()
	if c.RAMBytes == 0 {
		c.RAMBytes = 64 << 20
	}
	k, err := cache.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s := k.Stats()
		if s.RAM.Used != 0 || s.RAM.Slabs != 0 || s.Handles != 0 || s.Readers != 0 {
			t.Errorf("after close: %+v, want every gauge zero", s)
		}
	})
	return k
}

func open(t testing.TB, k *cache.Cache, p cache.Plan, rank, step uint64) *cache.Slab {
	t.Helper()
	s, err := k.Open(t.Context(), nil, p, rank, step)
	if err != nil {
		t.Fatalf("open rank %d step %d: %v", rank, step, err)
	}
	return s
}

// check compares a slab with its plan by a descriptor of its own, as the
// kernel would read it.
func check(t *testing.T, s *cache.Slab, p *testPlan, rank, step uint64) {
	t.Helper()
	got, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", s.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, p.want(rank, step)) {
		t.Fatalf("rank %d step %d: wrong bytes (%d of them, want %d)", rank, step, len(got), p.size)
	}
}

func TestSizes(t *testing.T) {
	k := newCache(t, cache.Config{})
	for i, size := range []int64{0, 1, 4095, 4096, 4097, 1<<20 - 1, 1 << 20, 3<<20 + 5} {
		p := &testPlan{id: byte(i), steps: 3, size: size}
		for step := range p.steps {
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
	}
}

// The bytes of a slab that somebody maps stay what they were, whatever comes
// and goes after its release, and its memory counts until it is let go.
func TestMappedAfterRelease(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20})
	p := &testPlan{steps: 200, size: 1 << 20, last: true} // else what was read first is kept for the next epoch
	s := open(t, k, p, 0, 0)
	m := mapped(t, s)
	s.Release()
	for step := uint64(1); step < p.steps; step++ {
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
		if u := k.Stats().RAM.Used; u > 16<<20 {
			t.Fatalf("step %d: %d bytes used, budget is %d", step, u, 16<<20)
		}
	}
	if d := k.Stats().RAM.Dying; d != 1<<20 {
		t.Errorf("%d bytes dying, want the one slab that is mapped", d)
	}
	if !bytes.Equal(m, p.want(0, 0)) {
		t.Error("the mapping changed")
	}
	unix.Munmap(m)
	if k.Stats().Recycled == 0 {
		t.Error("no slab was used again")
	}
}

// Ranks that hold everything: the next open waits, and gets its slab when one
// lets go, or an error that says why when nobody does. What they hold is told once,
// after a moment.
func TestAllHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, told := time.Now(), 0
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Shortage: func(_ cache.Plan, c *cache.Shortage) {
			if told++; told == 1 && (time.Since(began) > 2*time.Second || *c != cache.Shortage{Batches: 4, Held: 16 << 20, Size: 4 << 20, Asked: 4 << 20, Memory: 16 << 20}) {
				t.Errorf("after %v: %+v", time.Since(began), *c)
			}
		}})
		p := &testPlan{steps: 2, size: 4 << 20}
		var held []*cache.Slab
		for rank := range uint64(4) {
			held = append(held, open(t, k, p, rank, 0))
		}
		_, err := k.Open(t.Context(), nil, p, 50, 1)
		if c := k.Shortage(); c == nil || c.Batches != 4 {
			t.Errorf("an open waits for %+v", c)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("open with all held: %v, want a timeout for lack of room", err)
		}
		if told != 2 {
			t.Errorf("told %d times in two minutes", told)
		}
		held[0].Release()
		s := open(t, k, p, 60, 0)
		check(t, s, p, 60, 0)
		s.Release()
		for _, s := range held[1:] {
			s.Release()
		}
	})
}

// An interrupted open leaves; the fill goes on for the others.
func TestInterrupted(t *testing.T) {
	k := newCache(t, cache.Config{})
	p := &testPlan{steps: 1, size: 100, gate: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := k.Open(ctx, nil, p, 0, 0); gone <- err }()
	stays := make(chan *cache.Slab)
	go func() { s, _ := k.Open(t.Context(), nil, p, 0, 0); stays <- s }()
	for k.Stats().OpensWaited < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted open: %v", err)
	}
	close(p.gate)
	s := <-stays
	check(t, s, p, 0, 0)
	s.Release()
	if n := p.filled(0, 0); n != 1 {
		t.Errorf("filled %d times", n)
	}
}

// A failed fill is told to all who wait and tried again by the next open.
func TestFailure(t *testing.T) {
	k := newCache(t, cache.Config{})
	broken := fmt.Errorf("disk on fire")
	p := &testPlan{steps: 10, size: 100, fail: func(_, step uint64) error { return broken }}
	for range 3 {
		if _, err := k.Open(t.Context(), nil, p, 0, 0); !errors.Is(err, broken) {
			t.Fatalf("open: %v", err)
		}
	}
	if n := k.Stats().FillErrors; n < 3 {
		t.Errorf("%d fill errors counted", n)
	}
}

// What a rank will ask for is there before it asks, and no more than that.
func TestAhead(t *testing.T) {
	k := newCache(t, cache.Config{MaxAhead: 4})
	p := &testPlan{steps: 100, size: 1 << 10}
	for step := range uint64(20) {
		s := open(t, k, p, 7, step)
		s.Release()
	}
	awaitQuiet(k)
	if n := p.filled(7, 20); n != 1 {
		t.Errorf("the next step was filled %d times, want 1", n)
	}
	if n := p.filled(7, 40); n != 0 {
		t.Errorf("a step beyond the window was filled")
	}
	// Somebody looks around: the rank's own way stays what it was.
	open(t, k, p, 7, 90).Release()
	awaitQuiet(k)
	open(t, k, p, 7, 20).Release()
	awaitQuiet(k)
	if p.filled(7, 91) != 0 || p.filled(7, 21) != 1 {
		t.Errorf("after a look at 90: 91 filled %d times, 21 %d times", p.filled(7, 91), p.filled(7, 21))
	}
	// A resume: the window goes along.
	open(t, k, p, 7, 60).Release()
	open(t, k, p, 7, 61).Release()
	awaitQuiet(k)
	if p.filled(7, 62) != 1 || p.filled(7, 59) != 0 {
		t.Errorf("after a jump to 60: 62 filled %d times, 59 %d times", p.filled(7, 62), p.filled(7, 59))
	}
	if n := p.filled(0, 0); n != 0 {
		t.Error("a rank that nobody reads was filled")
	}
}

// The first steps of the next epoch are there before this one ends.
func TestAheadOfTheEpoch(t *testing.T) {
	k := newCache(t, cache.Config{MaxAhead: 4})
	next := &testPlan{id: 2, steps: 20, size: 1 << 10, last: true}
	p := &testPlan{id: 1, steps: 20, size: 1 << 10, next: next}
	for step := range p.steps - 1 {
		open(t, k, p, 7, step).Release()
		awaitQuiet(k)
	}
	if next.filled(7, 0) != 1 || next.filled(7, 10) != 0 {
		t.Errorf("before the last step: the next epoch's step 0 was filled %d times, 10 %d times", next.filled(7, 0), next.filled(7, 10))
	}
	open(t, k, p, 7, p.steps-1).Release()
	for step := range next.steps {
		awaitQuiet(k)
		if next.filled(7, step) != 1 {
			t.Fatalf("step %d of the next epoch was filled %d times before it was opened", step, next.filled(7, step))
		}
		open(t, k, next, 7, step).Release()
	}
}

// A cyclic scan of more than memory holds: a part of it stays, the rest goes by.
func TestCycle(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, MaxAhead: 2})
	p := &testPlan{steps: 64, size: 1 << 20}
	const epochs = 5
	for range epochs {
		for step := range p.steps {
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
	}
	total := 0
	for step := range p.steps {
		total += p.filled(0, step)
	}
	// Of 32 slabs a few are on their way in or out.
	if most := int(p.steps) + (epochs-1)*int(p.steps-32+6); total > most {
		t.Errorf("%d fills in %d epochs, want %d at most", total, epochs, most)
	}
}

// Those who open at random beside a job take turns with it: all that a job needs
// half of the one worker's time for is ready when it comes.
func TestStray(t *testing.T) {
	for _, row := range []struct {
		name string
		ram  int64
		size int64 // of a batch; the job reads 200, the others two to the 20
	}{
		{"room for all that is read", 64 << 20, 100 << 10},
		{"room for a sixth of the job", 16 << 20, 512 << 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStray(t, row.ram, row.size) })
		})
	}
}

func testStray(t *testing.T, ram, size int64) {
	k := newCache(t, cache.Config{RAMBytes: ram, Workers: 1})
	source := make(chan struct{}, 1) // it gives one at a time, so more at a time give no more
	slow := func(uint64, uint64) error {
		source <- struct{}{}
		time.Sleep(time.Millisecond)
		<-source
		return nil
	}
	job := &testPlan{id: 1, steps: 200, size: size, fail: slow}
	other := &testPlan{id: 2, steps: 1 << 20, size: size, fail: slow}
	ctx, stop := context.WithCancel(t.Context())
	var strays sync.WaitGroup
	for i := range uint64(4) {
		strays.Go(func() {
			for step := i * 7919; ctx.Err() == nil; step = (step*2654435761 + 1) % other.steps {
				if s, err := k.Open(ctx, nil, other, 0, step); err == nil {
					s.Release()
				}
			}
		})
	}
	waited := 0
	for step := range job.steps {
		time.Sleep(3 * time.Millisecond)
		if _, ok := k.Contains(job, 3, step); !ok && step > 10 {
			waited++
		}
		open(t, k, job, 3, step).Release()
	}
	stop()
	strays.Wait()
	if n := int(k.Stats().Fills); waited > 0 || n < 300 {
		t.Errorf("%d of %d batches of the job were not ready; %d fills, want 300 with those for others", waited, job.steps, n)
	}
}

// awaitQuiet waits until no fill is begun any more: the counters stand still.
func awaitQuiet(k *cache.Cache) {
	for last, same := uint64(0), 0; same < 20; time.Sleep(time.Millisecond) {
		if n := k.Stats().Fills; n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
}

// Batches that no other epoch has are not hoarded: their memory is used again
// long before the budget is.
func TestOnce(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 512 << 20})
	p := &testPlan{steps: 200, size: 1 << 20, once: true}
	for step := range p.steps {
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
	}
	if s := k.Stats(); s.RAM.Used > 64<<20 || s.Recycled < 100 {
		t.Errorf("%d bytes used and %d slabs recycled for an epoch of %d", s.RAM.Used, s.Recycled, 200<<20)
	}
}

// A batch larger than memory is served from NVMe; what memory gives up goes
// there, and a cache that starts later finds it, checks it, and refuses what
// was damaged.
func TestNVMe(t *testing.T) {
	dir := t.TempDir()
	config := cache.Config{RAMBytes: 16 << 20, Policy: "all-disk", NVMe: []disks.Dir{{Path: dir, Bytes: 256 << 20}}}
	k := newCache(t, config)
	large := &testPlan{id: 1, steps: 2, size: 20 << 20}
	s := open(t, k, large, 0, 0)
	if s.Tier() != "nvme" {
		t.Errorf("a batch larger than ram is in %s", s.Tier())
	}
	check(t, s, large, 0, 0)
	s.Release()

	small := &testPlan{id: 2, steps: 64, size: 1 << 20}
	for step := range small.steps {
		s := open(t, k, small, 0, step)
		check(t, s, small, 0, step)
		s.Release()
	}
	if n := k.Stats().NVMe[0].Slabs; n < 20 {
		t.Errorf("%d slabs on nvme, want most of what ram could not hold", n)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}

	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var damaged string
	for _, n := range names {
		if len(n.Name()) > 40 && damaged == "" && n.Name()[:2] == "02" {
			damaged = dir + "/" + n.Name()
			f, _ := os.OpenFile(damaged, os.O_RDWR, 0)
			f.WriteAt([]byte{99}, 12345)
			f.Close()
		}
	}
	os.WriteFile(dir+"/.part-7", []byte("half"), 0600)

	k = newCache(t, config)
	before := k.Stats()
	again := &testPlan{id: 2, steps: 64, size: 1 << 20}
	for step := range again.steps {
		s := open(t, k, again, 0, step)
		check(t, s, again, 0, step)
		s.Release()
	}
	if n := k.Stats().Restored; n < 19 {
		t.Errorf("%d slabs found again of %d", n, before.NVMe[0].Slabs)
	}
	if _, err := os.Stat(dir + "/.part-7"); err == nil {
		t.Error("an unfinished slab was left")
	}
	if n := k.Stats().NVMe[0].Damaged; damaged == "" || n != 1 {
		t.Errorf("%d slabs found damaged, want the one that was (%q)", n, damaged)
	}
}

// Many ranks, tiny memory, everything at once: right bytes, and the budget holds.
func TestStress(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20})
	p := &testPlan{steps: 40, size: 300_000}
	var ranks sync.WaitGroup
	for rank := range uint64(8) {
		ranks.Go(func() {
			for step := range p.steps {
				s, err := k.Open(t.Context(), nil, p, rank, step)
				if err != nil {
					t.Error(err)
					return
				}
				check(t, s, p, rank, step)
				s.Release()
			}
		})
	}
	ranks.Wait()
	if u := k.Stats().RAM.Used; u > 16<<20 {
		t.Errorf("%d bytes used", u)
	}
}

// Twice as many ranks as memory has room for, that compute with what they have and
// close it, be it seconds later: they get on. So do those that open the next
// batch meanwhile in a thread beside.
func TestAReadingCrowd(t *testing.T) {
	for _, row := range []struct {
		name    string
		compute time.Duration
		beside  bool
	}{
		{"moments", 300 * time.Millisecond, false},
		{"seconds", 3 * time.Second, false},
		{"many seconds", 8 * time.Second, false}, // four at a time of eight: a wait may be several rounds
		{"another thread opens", 8 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ranks := uint64(8)
				if row.beside { // else two wait for each that computes
					ranks = 4
				}
				k := newCache(t, cache.Config{RAMBytes: 16 << 20, Holds: func(int32, uint64, uint64) bool { return !row.beside }})
				p, stalls := &testPlan{steps: 10, size: 4 << 20}, stall.NewTable(time.Now)
				var all sync.WaitGroup
				for rank := range ranks {
					opened := func(step uint64) *cache.Slab {
						account := stalls.Open("job", rank)
						account.Thread = 100 + int32(rank)
						s, err := k.Open(t.Context(), &account, p, rank, step)
						if err != nil {
							t.Errorf("rank %d step %d: %v", rank, step, err)
							return nil
						}
						return s
					}
					all.Go(func() {
						s := opened(0)
						for step := uint64(1); s != nil && step < p.steps; step++ {
							next := make(chan *cache.Slab, 1)
							if row.beside {
								go func() { next <- opened(step) }()
							}
							time.Sleep(row.compute)
							s.Release()
							if !row.beside {
								next <- opened(step)
							}
							s = <-next
						}
						if s != nil {
							s.Release()
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// Ranks of one thread that open the next batch while they have the last one open,
// and together all of memory: one is refused as soon as all wait, and when it has
// closed what it has the others get on.
func TestHoldersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Holds: func(thread int32, rank, step uint64) bool {
			return thread == 100+int32(rank) && step == 0
		}})
		p, stalls := &testPlan{steps: 2, size: 4 << 20}, stall.NewTable(time.Now)
		var ranks, opened sync.WaitGroup
		var computed, refused atomic.Int32
		opened.Add(4)
		for rank := range uint64(4) {
			ranks.Go(func() {
				account := stalls.Open("job", rank)
				account.Thread = 100 + int32(rank)
				s, err := k.Open(t.Context(), &account, p, rank, 0)
				opened.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Release()
				opened.Wait()                                      // or the next of one takes the place of another's first
				time.Sleep(time.Duration(rank) * 20 * time.Second) // until the last has computed, nothing is certain
				computed.Add(1)
				began := time.Now()
				next, err := k.Open(t.Context(), &account, p, rank, 1)
				var crowd *cache.Shortage
				switch {
				case err == nil:
					next.Release()
				case !errors.As(err, &crowd) || !crowd.Stuck || !errors.Is(err, meta.ErrNoSpace):
					t.Errorf("rank %d: %v, want it refused for lack of room", rank, err)
				default:
					refused.Add(1)
					if computed.Load() < 4 || time.Since(began) > 65*time.Second {
						t.Errorf("rank %d was refused after %v, when %d waited", rank, time.Since(began), computed.Load())
					}
				}
			})
		}
		ranks.Wait()
		if refused.Load() == 0 {
			t.Error("none was refused")
		}
	})
}
