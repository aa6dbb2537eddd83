package system_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// Ranks that take batches as they come have every record once, each by himself
// or by a master who asks for them; and so have the loops of a shell.
func TestQueueGivesEachBatchOnce(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 5000)
	n.create("d", s, "--ranks", "4", "--batch", "50", "--order", "full")
	var sum, bytes uint64
	for _, r := range s.records {
		sum += xxhash.Sum64(r)
		bytes += uint64(len(r))
	}
	for epoch, args := range [][]string{{}, {"-m"}} {
		view := fmt.Sprintf("d@epoch=%d", epoch)
		out := mpirun(t, 4, append(append([]string{"queue_work"}, args...), n.path(view))...)
		want := fmt.Sprintf("queue_work OK ranks=4 batches=100 records=5000 bytes=%d local=100 lost=0 sum=%016x", bytes, sum)
		if !strings.Contains(out, want) {
			t.Errorf("%q:\n%swant %s", args, out, want)
		}
	}
	got := sh(t, `cd "$1" && for rank in 0 1 2 3; do
		while read -r path bytes records where; do cat "$path"; done < rank-$rank/queue > "$2/$rank" & done; wait; cat "$2"/? | sort | uniq -d | wc -l; cat "$2"/? | wc -l # the last line has no end`,
		n.path("d@epoch=2"), t.TempDir())
	if strings.Join(strings.Fields(got), " ") != "0 4999" {
		t.Errorf("shells read %q lines twice and in all", got)
	}
}

// A rank that is slow, here as it takes a batch for each nine of the other's, reads as many
// fewer: nobody has a share beforehand. A plan gives each rank the same.
func TestRanksOfUnequalSpeed(t *testing.T) {
	t.Parallel()
	n, dir := start(t), t.TempDir()
	sh(t, `seq 1 400 >"$1"`, dir+"/all")
	n.ok("dataset", "create", "d", "--source", "file:"+dir+"/all", "--as", "lines", "--ranks", "2", "--batch", "10")
	got := sh(t, `cd "$1" && out=$2
		echo 0 >$out/quick
		n=0; while read -r path rest; do
			cat $path >>$out/read-slow; n=$((n + 1)); echo $n >$out/slow
			want=$((9 * n)); [ $want -le $((40 - n)) ] || want=$((40 - n))
			until [ $(cat $out/quick) -ge $want ]; do sleep 0.02; done
		done <rank-0/queue &
		m=0; while read -r path rest; do
			cat $path >>$out/read-quick; m=$((m + 1)); echo $m >$out/new; mv $out/new $out/quick
		done <rank-1/queue
		wait
		cat $out/read-* | sort -n | cmp - $out/all
		echo $(cat $out/slow) $(cat $out/quick)`, n.path("d"), dir)
	if strings.TrimSpace(got) != "4 36" {
		t.Errorf("40 batches were divided so: %s", got)
	}
}

// Whoever closes a queue gives back what he did not finish.
func TestQueueTakesBack(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 40)
	n.create("d", s, "--ranks", "2", "--batch", "10")
	first := sh(t, `head -n 1 "$1/rank-0/queue"`, n.path("d"))
	all := sh(t, `cat "$1/rank-1/queue"`, n.path("d"))
	if strings.Count(all, "\n") != 4 || !strings.Contains(all, strings.TrimSpace(first)) {
		t.Errorf("head took %q, cat then got\n%s", first, all)
	}
	if again := sh(t, `cat "$1/rank-0/queue"`, n.path("d")); again != "" {
		t.Errorf("of a queue that is worked off: %q", again)
	}
	if listing := sh(t, `ls -a "$1/rank-0"`, n.path("d")); strings.Contains(listing, "queue") {
		t.Errorf("the queue is listed, so a copy of the tree would take its work:\n%s", listing)
	}
}
