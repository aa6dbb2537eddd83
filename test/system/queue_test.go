package system_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// Ranks that take batches as they come have every record once, each by itself
// or by a master that takes them for all; and so have the loops of a shell.
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
// fewer: no rank has a share beforehand. A plan gives each rank the same.
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

// A reader that closes a queue gives back the batch that it did not finish.
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

// A daemon is killed while a reader has a batch of a queue in hand, which outlives it. When
// the host is mounted again that reader is counted no more, and the batch is free; a reader that
// comes then gets all batches, and is the only one that is counted.
func TestQueueAfterAKill(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	old := p.start()
	old.create("d", newLines(t, 40), "--ranks", "2", "--batch", "10")
	line, end := takeOne(t, old.path("d")+"/rank-0/queue")
	defer end()
	shown := func(n *node) (q struct{ Readers, Leased, Done int }) {
		t.Helper()
		must(t, json.Unmarshal([]byte(n.ok("--json", "queue", "show", "d").out), &q))
		return q
	}
	if q := shown(old); q.Readers != 1 || q.Leased != 1 {
		t.Errorf("with a reader: %+v", q)
	}
	old.Kill()
	next := p.start()
	eventually.True(t, "nothing is left of the reader of before", func() bool {
		q := shown(next)
		return q.Readers == 0 && q.Leased == 0
	})
	again, leave := takeOne(t, next.path("d")+"/rank-1/queue")
	if q := shown(next); q.Readers != 1 || q.Leased != 1 {
		t.Errorf("with a reader of the new daemon: %+v", q)
	}
	leave()
	all := sh(t, `cat "$1/rank-0/queue"`, next.path("d"))
	if strings.Count(all, "\n") != 4 || !strings.Contains(all, line) || !strings.Contains(all, again) {
		t.Errorf("in hand were %q and %q, and then there is\n%s", line, again, all)
	}
}

// takeOne takes a line of a queue in a process that keeps the file open until end.
func takeOne(t *testing.T, queue string) (line string, end func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `exec 3<"$0"; read -r line <&3; echo "$line"; exec sleep 3600`, queue)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	end = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(end)
	line, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line), end
}

// A user who begins queue after queue, and works none off, keeps no other user from theirs; a queue
// whose reader left before anything was done makes room by itself.
func TestQueuesOfOneUser(t *testing.T) {
	t.Parallel()
	n, dir := start(t), t.TempDir()
	sh(t, `seq 1 400 >"$1"`, dir+"/all")
	n.ok("dataset", "create", "d", "--source", "file:"+dir+"/all", "--as", "lines", "--ranks", "2", "--batch", "10")
	r := command(t, "python3", "-c", `
import errno, os, resource, sys, time
view, queues = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (2 * queues, 2 * queues))
def begin(user, epoch):
    os.seteuid(user)
    fd = os.open(f"{view}@epoch={epoch}/rank-0/queue", os.O_RDONLY)
    os.seteuid(0)
    try:
        assert os.read(fd, 4096).endswith(b" local\n")
        return fd
    except OSError as e:
        os.close(fd)
        assert e.errno == errno.EBUSY, e
many, other, root = 12347, 12348, 0
kept = [begin(many, epoch) for epoch in range(queues)]
assert None not in kept, kept.index(None)
assert not begin(many, queues), "there is no end to the queues of one user"
assert begin(other, queues), "another user has no room"
assert begin(root, queues + 1), "root has no room"
os.close(kept[7]) # the cluster is told a moment later
while not begin(many, queues + 2):
    time.sleep(0.1)
`, n.path("d"), fmt.Sprint(state.MaxUserQueues))
	if r.code != 0 {
		t.Error(r)
	}
}
