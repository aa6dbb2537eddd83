package disks_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

// clones are copies of a directory at several times: what a daemon that starts
// would find if another one, or the power, had failed then.
type clones struct {
	t   testing.TB
	top string
	mu  sync.Mutex // under it:
	all []clone
	now int // least of the next
}

type clone struct {
	dir   string
	least int // slabs that are in it for sure
}

func newClones(t testing.TB) *clones { return &clones{t: t, top: t.TempDir()} }

func (c *clones) add(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := clone{fmt.Sprintf("%s/%d", c.top, len(c.all)), c.now}
	must(c.t, os.CopyFS(to.dir, os.DirFS(from)))
	c.all = append(c.all, to)
}

// expect says that so many more slabs are complete from now on.
func (c *clones) expect(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += more
}

func (c *clones) taken() []clone {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// reopen starts a tier on what a crash left, and reports how many of so many
// slabs there are, all whole and right.
func reopen(t testing.TB, dir string, n, size int) (there int, s disks.Stats) {
	t.Helper()
	k := start(t, one(dir, 64<<20))
	defer k.stop()
	k.put99()
	there = k.gotOf(n, size)
	eventually.True(t, "what is not a slab is gone", func() bool {
		names, err := filepath.Glob(dir + "/.part-*")
		return err == nil && len(names) == 0
	})
	if !k.got(n+1, size) {
		k.put(n+1, size)
		if !k.got(n+1, size) {
			t.Error("it takes nothing new")
		}
	}
	if s := k.stats(); s.Used != diskUsage(t, dir) || s.Slabs != len(slabs(t, dir)) {
		t.Errorf("%+v, on disk %d bytes in %d slabs", s, diskUsage(t, dir), len(slabs(t, dir)))
	}
	return there, k.stats()
}

// The directory is copied after every step of a run; whatever is copied, a
// daemon finds whole slabs in it and nothing else.
func TestCrashAtEachStep(t *testing.T) {
	dir := t.TempDir()
	c := one(dir, 60<<10) // seven slabs
	k := start(t, c)
	const size = 8000
	states := newClones(t)
	snap := func() { states.add(dir) }
	for n := range 20 {
		switch n % 4 {
		case 3:
			k.Drop(key(n - 2))
			snap()
		case 2:
			k.put(n, size)
		default:
			err := k.Fill(key(n), size, func(mem []byte) error {
				snap() // there are blocks and no bytes
				copy(mem, content(key(n), size/2))
				snap()
				copy(mem, content(key(n), size))
				snap()
				return nil
			}, nil)
			must(t, err)
		}
		snap()
		if n == 10 { // an index that will be wrong
			k.stop()
			snap()
			k = start(t, c)
		}
	}
	most := 0
	for _, state := range states.taken() {
		there, s := reopen(t, state.dir, 20, size)
		if s.Damaged != 0 || s.Lost > 0 {
			t.Errorf("%s: %+v", state.dir, s)
		}
		most = max(most, there)
	}
	if most != 7 {
		t.Errorf("%d slabs at most, want what the budget holds", most)
	}
}

// A power failure may keep any of the names, any part of the bytes, and any
// version of the index. What is served is right, and all that was left alone
// is there.
func TestPowerFails(t *testing.T) {
	const n, size = 12, 5000
	base := t.TempDir()
	k := start(t, one(base, 1<<20))
	k.putAll(0, n/2, size)
	k.stop()
	old, err := os.ReadFile(base + "/.index")
	must(t, err)
	k = start(t, one(base, 1<<20))
	k.putAll(n/2, n, size)
	k.stop()
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir() + "/slabs"
		must(t, os.CopyFS(dir, os.DirFS(base)))
		whole := 0
		for _, path := range slabs(t, dir) {
			before, err := os.ReadFile(path)
			must(t, err)
			switch rapid.SampledFrom([]string{"whole", "whole", "zeros", "half", "short", "flip", "lost", "unnamed"}).Draw(r, "slab") {
			case "zeros":
				must(t, os.WriteFile(path, make([]byte, size), 0o600))
			case "half":
				from := rapid.IntRange(0, size-1).Draw(r, "from")
				must(t, os.WriteFile(path, append(before[:from:from], make([]byte, size-from)...), 0o600))
			case "short":
				must(t, os.Truncate(path, int64(rapid.IntRange(0, size-1).Draw(r, "to"))))
			case "flip":
				flip(t, path, int64(rapid.IntRange(0, size-1).Draw(r, "at")))
			case "lost":
				must(t, os.Remove(path))
			case "unnamed":
				must(t, os.Rename(path, fmt.Sprintf("%s/.part-%s", dir, filepath.Base(path)[:40])))
			}
			if after, err := os.ReadFile(path); err == nil && bytes.Equal(before, after) {
				whole++
			}
		}
		switch index := dir + "/.index"; rapid.SampledFrom([]string{"kept", "old", "lost", "torn", "flip"}).Draw(r, "index") {
		case "old":
			must(t, os.WriteFile(index, old, 0o600))
		case "lost":
			must(t, os.Remove(index))
		case "torn":
			must(t, os.Truncate(index, int64(rapid.IntRange(0, 16+n*64).Draw(r, "to"))))
		case "flip":
			flip(t, index, int64(rapid.IntRange(0, 16+n*64).Draw(r, "at")))
		}
		k := start(t, one(dir, 1<<20))
		defer k.stop()
		eventually.True(t, "the names have been seen", func() bool { return k.stats().Slabs >= whole && k.put99() })
		if there := k.gotOf(n, size); there != whole {
			r.Errorf("%d slabs of %d: %+v", there, whole, k.stats())
		}
	})
}

// put99 makes a slab, which waits until the names have been seen. One of an earlier daemon goes
// first: the index may tell of it, and then nothing would be made.
func (k *tier) put99() bool { k.Drop(key(99)); k.put(99, 100); return true }

// On a real file system, names reach the disk before bytes. The daemon that
// comes after a power failure finds the names, and serves none of them.
func TestPowerFailsBeforeBytes(t *testing.T) {
	i := newImage(t, 64)
	const size = 300 << 10
	k := start(t, one(i.slab, 32<<20))
	k.putAll(0, 10, size)
	run(t, "sync", "-f", i.mnt)
	k.putAll(10, 20, size)
	i.syncNames()
	i.cutPower()
	k.Close()
	i.revive()
	if n := len(slabs(t, i.slab)); n != 20 {
		t.Fatalf("%d names, want all", n)
	}
	there, s := reopen(t, i.slab, 20, size)
	if there != 10 || s.Damaged != 10 {
		t.Errorf("%d slabs served: %+v", there, s)
	}
}

// The power fails in the midst of many writers, again and again.
func TestPowerFailsAtAnyTime(t *testing.T) {
	i := newImage(t, 64)
	const size = 150 << 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	served := 0
	for round := range 8 {
		c := one(i.slab, 16<<20)
		c.Suspend, c.Save = 1<<40, 1<<20
		k := start(t, c)
		cut := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for n := w; n < 150; n += 3 {
					if n == 20+15*round {
						close(cut)
					}
					if n == 10 {
						_ = exec.Command("sync", "-f", i.mnt).Run() // or the power is gone already
					}
					if err := k.Put(key(n%60), content(key(n%60), size), nil); err != nil && !errors.Is(err, disks.ErrNoRoom) {
						t.Error(err)
					}
					if n%5 == 0 {
						k.Drop(key((n + 30) % 60))
					}
				}
			})
		}
		<-cut
		if random.IntN(2) == 0 {
			i.syncNames()
		}
		i.cutPower()
		writers.Wait()
		k.Close()
		i.revive()
		there, _ := reopen(t, i.slab, 60, size)
		served += there
	}
	if served == 0 {
		t.Error("no power failure left a slab")
	}
}

func run(t testing.TB, command ...string) { (&image{t: t}).run(command...) }
