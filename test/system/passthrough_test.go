package system_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Once a batch is open, the kernel reads, maps and sends it by itself: no READ
// request ever reaches the daemon.
func TestWarmReadsDoNotReachTheDaemon(t *testing.T) {
	t.Parallel()
	n, s := start(t), newFixed(t, 2048, recordSize)
	n.create("d", s, "--ranks", "2", "--batch", "128")
	holdToAllReads(t, n, s)
	c := n.status()
	if !c.Passthrough.On || c.Counters.BatchReads != 0 {
		t.Errorf("passthrough %v (%s): %d READ requests reached the daemon", c.Passthrough.On, c.Passthrough.Reason, c.Counters.BatchReads)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Without passthrough all reads are as before but slower, and the log and status say so.
func TestWithoutPassthrough(t *testing.T) {
	t.Parallel()
	n, s := start(t, "--no-passthrough"), newFixed(t, 2048, recordSize)
	n.create("d", s, "--ranks", "2", "--batch", "128")
	holdToAllReads(t, n, s)
	if r := n.readView(t, "d@order=full,seed=1,ranks=3"); !sameRecords(sorted(r.records()), sorted(s.records)) {
		t.Error("order full: other records than the source has")
	}
	c := n.status()
	if c.Passthrough.On || c.Counters.BatchReads == 0 {
		t.Errorf("passthrough %v, %d READ requests", c.Passthrough.On, c.Counters.BatchReads)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "passthrough is off") {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if got := n.logged("level=WARN", "passthrough is off"); got != 1 {
		t.Errorf("%d warnings in the log, want 1", got)
	}
	if got := n.ok("status").out; !strings.Contains(got, "passthrough OFF") || !strings.Contains(got, "WARNING") {
		t.Errorf("status does not say it loudly:\n%s", got)
	}
}

// holdToAllReads reads every batch of the dataset d of s, cut for 2 ranks into
// steps of 256, from several processes and in every way there is.
func holdToAllReads(t *testing.T, n *node, s source) {
	t.Helper()
	readers := []*rank{newRank(t), newRank(t), newRank(t)}
	for round := range 2 {
		for k := range len(s.records) / 256 {
			for mine := range 2 {
				from := k*256 + mine*128
				want, size := sumOf(s.all(from, from+128)), int64(128*recordSize)
				for i, r := range readers { // all of them have it open at a time
					name := fmt.Sprint(round, i)
					if a := r.open(name, n.batch("d", mine, k)); a.N != size {
						t.Fatalf("fstat says %d bytes, want %d", a.N, size)
					}
				}
				for i, r := range readers {
					name := fmt.Sprint(round, i)
					r.do("map", name)
					for _, way := range []string{"sum", "read", "sendfile"} {
						if a := r.do(way, name); a.Sum != want || a.N != size {
							t.Fatalf("round %d, rank %d, step %d, %s: other bytes", round, mine, k, way)
						}
					}
					r.do("close", name)
					if a := r.do("sum", name); a.Sum != want {
						t.Fatalf("round %d, rank %d, step %d: other bytes after close", round, mine, k)
					}
					r.do("unmap", name)
				}
			}
		}
	}
	if sh(t, `cat "$1"/rank-*/batch-??????`, n.path("d")) == "" {
		t.Error("cat reads nothing")
	}
	if _, err := os.ReadFile(n.batch("d", 1, 0)); err != nil {
		t.Error(err)
	}
}
