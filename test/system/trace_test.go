package system_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What a program opens in an order of its own can be read below the mount.
func TestTraceFile(t *testing.T) {
	t.Parallel()
	n, s := start(t), newFixed(t, 12*batchRecords, recordSize)
	n.create("d", s)
	if got := sh(t, `cat "$1/.rankfs/trace"`, n.mount); got != "# no batch was opened since the mount\n" {
		t.Errorf("before anything was opened it says %q", got)
	}
	r := newRank(t)
	for range 2 {
		for k := range 12 {
			k = k * 5 % 12
			if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
				t.Errorf("batch %d has other bytes", k)
			}
		}
	}
	_, got, _ := strings.Cut(sh(t, `cat "$1/.rankfs/trace"`, n.mount), "\nview d@epoch=0,")
	if _, got, _ = strings.Cut(got, "\n"); got != `rank 0
steps 12
forgotten 0
# 24 opens in 10 runs
# next +5: 14 of 23
# next -7: 9 of 23
# again after 1.00 of the steps: 12
run 0 +5 3
run 3 +5 2
run 1 +5 3
run 4 +5 2
run 2 +5 2
run 0 +5 3
run 3 +5 2
run 1 +5 3
run 4 +5 2
run 2 +5 2
` {
		t.Errorf("of the program it says\n%s", got)
	}
}

// fills is how many batches were filled since the mount.
func (n *node) fills() int { return int(n.status().Counters.Fills) }

// strided has a rank read so many batches three times, each time every seventh from
// each of the first seven on.
func (r *rank) strided(t *testing.T, n *node, name string, s source, batches, records int) {
	t.Helper()
	for range 3 {
		for first := range 7 {
			for k := first; k < batches; k += 7 {
				if r.batch(n.batch(name, 0, k)) != sumOf(s.all(k*records, (k+1)*records)) {
					t.Errorf("batch %d of %s has other bytes", k, name)
				}
			}
		}
	}
}

// What was learnt of a program on a small dataset saves it fills on a large one,
// after a restart too; a file of it that was damaged is set aside.
func TestTraceLearnt(t *testing.T) {
	t.Parallel()
	const records, size, few, many = 256, 2048, 14, 98 // memory has room for 32 batches of 512 KiB
	p := newNode(t)
	small, large := newFixed(t, few*records, size), newFixed(t, many*records, size)
	n := p.start("--ram", "16MiB")
	n.create("small", small, "--batch", "256")
	n.create("large", large, "--batch", "256")
	r := newRank(t)
	if got := n.cli("trace", "learn", "small"); got.code != 3 || !strings.Contains(got.err, "have the program read it") {
		t.Errorf("learnt before anything was read: %v", got)
	}
	r.strided(t, n, "small", small, few, records)
	n.create("shuffled", small, "--batch", "256", "--order", "full")
	for _, args := range [][]string{{"small@order=full"}, {"small@order=window:512"}, {"small", "--for", "shuffled"}} {
		if got := n.cli(append([]string{"trace", "learn"}, args...)...); got.code != 2 || !strings.Contains(got.err, "no epoch has the batches of another") {
			t.Errorf("learnt, though no reader would use it: trace learn %v: %v", args, got)
		}
	}
	before := n.fills()
	r.strided(t, n, "large", large, many, records)
	without := n.fills() - before
	if got := n.ok("trace", "learn", "small", "--for", "large").out; got != "large: learnt of 42 opens; a step came again after 14 opens, mostly\n" {
		t.Errorf("learn says %q", got)
	}
	n.stop()

	n = p.start("--ram", "16MiB")
	if got := n.ok("trace", "show", "large").out; strings.Count(got, "\nrun ") != 21 || !strings.Contains(got, "\nview small@") {
		t.Errorf("after a restart there is\n%s", got)
	}
	r.strided(t, n, "large", large, many, records)
	t.Logf("%d fills of %d opens without a trace, %d with it", without, 3*many, n.fills())
	if with := n.fills(); with > without*7/8 {
		t.Errorf("%d fills of %d opens without a trace, %d with it", without, 3*many, with)
	}
	n.ok("trace", "rm", "large")
	n.ok("trace", "learn", "large", "--for", "small")
	n.stop()

	flip(t, filepath.Join(p.state, "traces", "small.trace"), 50)
	n = p.start("--ram", "16MiB")
	if w := n.status().Warnings; len(w) != 1 || !strings.Contains(w[0], "small.damaged is corrupt") {
		t.Errorf("warnings: %q", w)
	}
	if got := n.ok("trace", "ls").out; !strings.HasPrefix(got, "nothing was learnt") {
		t.Errorf("what was damaged is listed: %s", got)
	}
}
