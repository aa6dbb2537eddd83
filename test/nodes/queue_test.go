package nodes_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A reader takes batches from a queue in a shell loop. It notes what it has
// begun, and, once it has been told that it counts, what it has finished. With so many
// it waits while a file is there that holds it up.
type reader struct {
	cmd  *exec.Cmd
	dir  string
	ends context.CancelFunc
}

const readerLoop = `
	exec 3< "$0" || exit 1
	had= left=$2
	while :; do
		if read -r path size records where <&3 2>"$1/err"; then
			[ -z "$had" ] || echo "$had" >> "$1/finished"
			had=$(basename $(dirname $path))/$(basename $path)
			echo "$had" >> "$1/begun"
			left=$((left - 1))
			while [ $left -le 0 ] && [ -e "$1/hold" ]; do sleep 0.05; done
		elif grep -q Stale "$1/err"; then
			had=
		elif [ -s "$1/err" ]; then
			cat "$1/err" >&2; exit 1
		else
			[ -z "$had" ] || echo "$had" >> "$1/finished"
			exit 0
		fi
	done`

// newReader starts one that is held up with its batch of that number, or never if that is
// 0.
func newReader(t *testing.T, n *daemon.Place, view string, rank, held int) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &reader{dir: t.TempDir(), ends: cancel}
	if held > 0 {
		os.WriteFile(r.dir+"/hold", nil, 0o600)
	}
	r.cmd = n.Command(ctx, "bash", "-c", readerLoop, fmt.Sprintf("%s/datasets/%s/rank-%d/queue", n.Mount(), view, rank), r.dir, fmt.Sprint(held))
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// votes is how many votes a node has.
func (m *team) votes(n *daemon.Place) int {
	for _, one := range m.Members(m.Nodes[0]).Nodes {
		if one.Host == n.Host.Name && one.Voter {
			return 1
		}
	}
	return 0
}

// goOn has it held up no more.
func (r *reader) goOn(t *testing.T) {
	t.Helper()
	if err := os.Remove(r.dir + "/hold"); err != nil {
		t.Fatal(err)
	}
}

func (r *reader) lines(name string) []string {
	text, _ := os.ReadFile(filepath.Join(r.dir, name))
	return strings.Fields(string(text))
}

// finishedOnce checks that each of a queue's batches was finished by one of the
// readers, once.
func finishedOnce(t *testing.T, readers []*reader, batches int) {
	t.Helper()
	count := make(map[string]int)
	for _, r := range readers {
		for _, batch := range r.lines("finished") {
			count[batch]++
		}
	}
	for batch, n := range count {
		if n != 1 {
			t.Errorf("%s was finished %d times", batch, n)
		}
	}
	if len(count) != batches {
		t.Errorf("%d batches of %d are finished", len(count), batches)
	}
}

// Every batch of a queue is finished by one reader, and by no other, although a
// reader, a daemon and the leader are killed while they have some.
func TestAQueueOutlivesItsReaders(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts())
	m.numbers(m.Nodes[0], "d")
	m.voting()
	leader, others := m.Leader()
	// The daemon that is killed beside the leader has no vote: two votes of three
	// would be too many.
	slices.SortFunc(others, func(a, b *daemon.Place) int { return m.votes(b) - m.votes(a) })
	const view = "d@order=full"
	holds := func(r *reader, batches int) func() bool {
		return func() bool { return len(r.lines("begun")) == batches }
	}
	// Two that are going to be killed with a batch in hand.
	killed := newReader(t, others[0], view, 0, 1)
	orphan := newReader(t, others[2], view, 1, 1)
	for _, r := range []*reader{killed, orphan} {
		eventually.Within(t, patience, "it has a batch", holds(r, 1))
	}
	var readers []*reader
	for i, n := range []*daemon.Place{others[0], others[0], others[1], others[1]} {
		readers = append(readers, newReader(t, n, view, i, 4))
	}
	finished := func() (n int) {
		for _, r := range readers {
			n += len(r.lines("finished"))
		}
		return n
	}
	for _, r := range readers {
		eventually.Within(t, patience, "it has finished some, and has another", holds(r, 4))
	}
	killed.ends()
	others[2].Kill()
	leader.Kill()
	begun := time.Now()
	before := finished()
	for _, r := range readers {
		r.goOn(t)
	}
	eventually.Within(t, patience, "it goes on", func() bool { return finished() > before+4 })
	t.Logf("it goes on %v after the leader was killed, from %d of 100", time.Since(begun), before)
	for _, r := range readers {
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("a reader: %v", err)
		}
	}
	finishedOnce(t, readers, 100)
	for _, r := range []*reader{killed, orphan} {
		if done := r.lines("finished"); len(done) != 0 {
			t.Errorf("held up, it finished %v", done)
		}
	}
}

// Many readers of a queue on one node wait at a leader on another for the one batch
// that a reader has taken, for longer than a call may take. None is refused, others
// are served meanwhile, and all see the end.
func TestManyReadersWait(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:2])
	m.source(m.Nodes[0])
	m.Nodes[0].Do("dataset", "create", "d", "--source", "file:"+m.Nodes[0].Dir+"/numbers", "--as", "lines")
	m.Await("d")
	_, others := m.Leader()
	n := others[0]
	readers := []*reader{newReader(t, n, "d@batch=10000", 0, 1)}
	eventually.Within(t, patience, "it has the batch", func() bool { return len(readers[0].lines("begun")) == 1 })
	for range 80 {
		readers = append(readers, newReader(t, n, "d@batch=10000", 0, 1))
	}
	time.Sleep(15 * time.Second) // a call may take ten
	free := newReader(t, n, "d@batch=5000", 0, 0)
	if err := free.cmd.Wait(); err != nil {
		t.Errorf("a reader of another queue: %v", err)
	}
	finishedOnce(t, []*reader{free}, 2)
	for _, r := range readers {
		r.goOn(t)
	}
	for i, r := range readers {
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("reader %d: %v", i, err)
		}
	}
	finishedOnce(t, readers, 1)
}
