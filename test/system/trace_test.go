package system_test

import (
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
