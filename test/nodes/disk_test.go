package nodes_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A disk under the cluster's log is full, of the leader and of a follower. The
// others go on with a queue, which is all writing; that node serves what is
// planned, says what is wrong with it, and catches up once there is room.
func TestAFullDiskUnderTheLog(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := gather(t, c, c.Hosts()[:3])
	for _, n := range m.Nodes {
		n.Must("mount", "-t", "tmpfs", "-o", "mode=700,size=40m", "none", n.Dir+"/state")
		t.Cleanup(func() { n.Must("umount", n.Dir+"/state") })
		m.source(n)
	}
	m.Found()
	m.numbers(m.Nodes[0], "d")
	m.units(m.Nodes[0], writing)
	for i, part := range []string{"the leader's", "a follower's"} {
		if !t.Run(part, func(t *testing.T) {
			m.in(t)
			m.voting()
			n, rest := m.Leader()
			if i > 0 {
				n, rest = rest[0], []*daemon.Place{n, rest[1]}
			}
			m.fullDisk(n, rest, i)
		}) {
			return
		}
	}
}

// writing is a dataset whose queue writes more of the cluster's log than there is
// room for, some 300 bytes for a batch.
var writing = strings.Repeat("w", 64)

const tasks = 18_000 // batches

// units makes a dataset whose queue has so many.
func (m *team) units(n *daemon.Place, name string) {
	m.t.Helper()
	n.Must("sh", "-c", `seq 1 $1 > "$0"`, n.Dir+"/many", fmt.Sprint(tasks))
	n.Do("dataset", "create", name, "--source", "file:"+n.Dir+"/many", "--as", "lines", "--ranks", "4", "--batch", "1")
	m.Await(name)
}

func (m *team) fullDisk(n *daemon.Place, rest []*daemon.Place, number int) {
	t := m.t
	want, err := daemon.Sums(n, "d")
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Count(n.Log(), noRoom)
	filler := n.Dir + "/state/filler"
	n.Must("sh", "-c", `cat /dev/zero > "$0" 2> /dev/null || df "$0"`, filler)
	queue := m.crowd(rest, fmt.Sprintf("%s@epoch=%d", writing, number))
	eventually.Within(t, patience, "it says that the disk is full", func() bool { return strings.Count(n.Log(), noRoom) > before })
	t.Logf("the disk is full after %d batches", queue.done())
	eventually.Within(t, patience, "its health says it", func() bool {
		text := n.Must("cat", n.Mount()+"/.rankfs/health")
		return strings.Contains(text, " log "+noRoom) && strings.Contains(text, "make room")
	})

	name := fmt.Sprint("beside", number)
	t.Logf("the others write within %v", m.written(rest[1], name))
	took, err := create(n, fmt.Sprint("full", number))
	t.Logf("it says within %v: %v", took, err)
	if err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("full: %v", err)
	}
	if got, err := daemon.Sums(n, "d"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it serves other bytes: %v", err)
	}
	done := queue.done()
	eventually.Within(t, patience, "the queue goes on", func() bool { return queue.done() > min(done, tasks-1) })

	n.Must("rm", filler)
	m.agree(name)
	queue.finish()
	m.written(n, fmt.Sprint("again", number))
	eventually.Within(t, patience, "all is well", func() bool { return n.Must("cat", n.Mount()+"/.rankfs/health") == "ok\n" })
}

// noRoom is what a daemon has in its log of a disk that is full.
const noRoom = "the cluster's log cannot be written on this node"

// A crowd is readers that take all batches of a queue, and do nothing.
type crowd struct {
	t    *testing.T
	dir  string
	cmds []*exec.Cmd
}

func (m *team) crowd(nodes []*daemon.Place, view string) *crowd {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	m.t.Cleanup(cancel)
	w := &crowd{t: m.t, dir: m.t.TempDir()}
	for rank := range 4 {
		n := nodes[rank%len(nodes)]
		cmd := n.Command(ctx, "sh", "-c", `cat "$0" > "$1"`, fmt.Sprintf("%s/datasets/%s/rank-%d/queue", n.Mount(), view, rank), fmt.Sprint(w.dir, "/", rank))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			m.t.Fatal(err)
		}
		w.cmds = append(w.cmds, cmd)
	}
	return w
}

// done is how many batches were taken.
func (w *crowd) done() (n int) {
	files, _ := filepath.Glob(w.dir + "/*")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		n += strings.Count(string(text), "\n")
	}
	return n
}

// finish waits for the end, and checks that each batch was taken once.
func (w *crowd) finish() {
	w.t.Helper()
	seen := make(map[string]bool)
	for rank, cmd := range w.cmds {
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("a reader: %v", err)
		}
		text, err := os.ReadFile(fmt.Sprint(w.dir, "/", rank))
		if err != nil {
			w.t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			path, _, _ := strings.Cut(line, " ")
			_, batch, _ := strings.Cut(path, "/rank-")
			if seen[batch] {
				w.t.Errorf("%s was taken twice", batch)
			}
			seen[batch] = true
		}
	}
	if len(seen) != tasks {
		w.t.Errorf("%d batches of %d were taken", len(seen), tasks)
	}
}
