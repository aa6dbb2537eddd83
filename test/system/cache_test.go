package system_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// Cached is what these tests look at of rankfs cache ls.
type cached struct {
	Policy string
	Views  []struct {
		View, Kind, Pinned string
		RAM, Packed, NVMe  struct {
			Batches int
			Bytes   int64
		}
	}
}

func (n *node) cached() (c cached) {
	n.t.Helper()
	must(n.t, json.Unmarshal([]byte(n.ok("cache", "ls", "--json").out), &c))
	return c
}

// row is how many batches of a view are in memory, and on disk, and where it is pinned.
func (c cached) row(view string) (memory, disk int, pinned string) {
	for _, v := range c.Views {
		if v.View == view {
			memory, disk, pinned = memory+v.RAM.Batches+v.Packed.Batches, disk+v.NVMe.Batches, v.Pinned
		}
	}
	return memory, disk, pinned
}

// The policy is chosen at the mount, and changed while a job reads.
func TestCachePolicy(t *testing.T) {
	t.Parallel()
	n, s := start(t, "--cache-policy", "lru"), newFixed(t, 60*batchRecords, recordSize)
	n.create("d", s)
	r := newRank(t)
	for i, policy := range []string{"lru", "interval", "all-packed", "mckp"} {
		if i > 0 {
			n.ok("cache", "policy", policy)
		}
		if got := n.cached().Policy; got != policy {
			t.Errorf("the policy is %s, want %s", got, policy)
		}
		for k := range 60 {
			if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
				t.Errorf("%s: batch %d has other bytes", policy, k)
			}
		}
	}
	if r := n.cli("cache", "policy", "best"); r.code != 2 || !strings.Contains(r.err, "choose one of mckp, ") {
		t.Errorf("an unknown policy: %v", r)
	}
	if r := newNode(t).refused("--cache-policy", "best"); r.code == 0 || !strings.Contains(r.err, "choose one of mckp, ") {
		t.Errorf("a mount with an unknown policy: %v", r)
	}
}

// What is pinned stays while something else goes through all of memory, is still
// pinned after a restart, and a file of pins that was damaged is set aside.
func TestCachePin(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	args := []string{"--ram", "16MiB", "--nvme", p.at + ":64MiB"}
	mine, other := newFixed(t, 8*batchRecords, recordSize), newFixed(t, 60*batchRecords, recordSize)
	n := p.start(args...)
	n.create("mine", mine)
	n.create("other", other)
	r := newRank(t)
	read := func(n *node, name string, batches int) {
		for k := range batches {
			r.batch(n.batch(name, 0, k))
		}
	}
	read(n, "mine", 8)
	if out := n.ok("cache", "pin", "mine").out; out != "mine: pinned at ram\n" {
		t.Errorf("pin says %q", out)
	}
	read(n, "other", 60)
	if memory, _, pinned := n.cached().row("mine"); memory < 8 || pinned != "ram" {
		t.Errorf("%d of 8 are in memory, pinned at %q", memory, pinned)
	}
	n.ok("cache", "pin", "mine", "--tier", "nvme")
	read(n, "other", 60)
	_, before, _ := n.cached().row("mine")
	n.stop()

	n = p.start(args...)
	if _, disk, pinned := n.cached().row("mine"); disk < before || pinned != "nvme" { // more were on their way
		t.Errorf("after a restart %d of %d are on disk, pinned at %q", disk, before, pinned)
	}
	n.ok("warm", "mine")
	for range 3 {
		read(n, "other", 60)
	}
	n.ok("warm", "mine", "--check")
	n.ok("cache", "unpin", "mine")
	if r := n.cli("cache", "unpin", "mine"); r.code != 3 {
		t.Errorf("unpinned twice: %v", r)
	}
	n.ok("cache", "pin", "other")
	n.stop()

	flip(t, filepath.Join(p.state, "cached"), 20)
	n = p.start(args...)
	if w := n.status().Warnings; len(w) != 1 || !strings.Contains(w[0], "cached.damaged is corrupt") {
		t.Errorf("warnings: %q", w)
	}
	if _, _, pinned := n.cached().row("other"); pinned != "" {
		t.Errorf("what was read from a damaged file: pinned at %q", pinned)
	}
}

// What is evicted is gone from memory and disk, but for what a rank holds, which
// stays readable.
func TestCacheEvict(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	n, s := p.start("--ram", "16MiB", "--nvme", p.at+":64MiB"), newFixed(t, 40*batchRecords, recordSize)
	n.createKept("d", s)
	r := newRank(t)
	for k := range 40 {
		r.batch(n.batch("d", 0, k))
	}
	r.open("held", n.batch("d", 0, 7))
	memory, disk, _ := n.cached().row("d")
	var e struct{ Evicted, Stayed struct{ Batches, Bytes int } }
	must(t, json.Unmarshal([]byte(n.ok("cache", "evict", "d", "--json").out), &e))
	if e.Evicted.Batches < 39 || e.Stayed.Batches != 1 || e.Evicted.Bytes < 39*batchRecords*recordSize {
		t.Errorf("evicted %+v, of %d in memory and %d on disk; %+v stayed", e.Evicted, memory, disk, e.Stayed)
	}
	if memory, disk, _ := n.cached().row("d"); memory+disk > 2 {
		t.Errorf("%d are in memory and %d on disk still", memory, disk)
	}
	if left, _ := filepath.Glob(p.at + "/*.slab"); len(left) > 1 {
		t.Errorf("%d files are left", len(left))
	}
	if r.do("read", "held").Sum != sumOf(s.all(7*batchRecords, 8*batchRecords)) {
		t.Error("what a rank held has changed")
	}
	if r.batch(n.batch("d", 0, 3)) != sumOf(s.all(3*batchRecords, 4*batchRecords)) {
		t.Error("what was evicted has other bytes")
	}
}

// A view that was warmed up is read without a fill; what does not fit is said,
// and takes nothing from a job.
func TestWarm(t *testing.T) {
	t.Parallel()
	n, s, large := start(t), newFixed(t, 24*batchRecords, recordSize), newFixed(t, 100*batchRecords, recordSize)
	n.create("d", s, "--ranks", "2", "--batch", "64", "--order", "full")
	n.create("large", large)
	if r := n.cli("warm", "d", "--check"); r.code != 1 || !strings.HasPrefix(r.out, "d: 0 of ") {
		t.Errorf("before: %v", r)
	}
	if r := n.ok("warm", "d", "--rank", "1"); !strings.HasPrefix(r.out, "d: 48 of 48 batches ready: 48 in ram") {
		t.Errorf("rank 1: %v", r)
	}
	n.ok("warm", "d")
	n.ok("warm", "d", "--check")
	ranks := newRank(t)
	for k := range 48 {
		for _, rank := range []int{0, 1} {
			ranks.batch(n.batch("d", rank, k))
		}
	}
	if c := n.status().Counters; c.OpensReady != 96 {
		t.Errorf("%d of %d batches were ready though all were warm", c.OpensReady, c.Opens)
	}

	r := n.cli("warm", "large")
	if r.code != 1 || !strings.Contains(r.err, "of 100 batches are ready; the rest does not fit: of the 64MiB of ram nothing may make way") || strings.Contains(r.err, "tier") {
		t.Errorf("what does not fit: %v", r)
	}
	n.ok("cache", "evict", "large")
	n.ok("warm", "d@epoch=1", "--background")
	eventually.True(t, "the next epoch is warm", func() bool { return n.cli("warm", "d@epoch=1", "--check").code == 0 })
}
