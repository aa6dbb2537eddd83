package plans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A reader takes batches from a queue. It notes what it has begun, with the last
// word of its line, and keeps the bytes of what it was told that it has finished.
// While a file is there that holds it up it begins nothing more.
type reader struct {
	cmd *exec.Cmd
	dir string
}

const readerLoop = `
	exec 3< "$0" || exit 1
	had=
	keep() { [ -z "$had" ] || cat "$had" >> "$1/bytes"; }
	while :; do
		if read -r path size records where <&3 2> "$1/error"; then
			keep "$1" || exit 1
			had=$path
			echo "$where" >> "$1/begun"
			while [ -e "$1/hold" ]; do sleep 0.05; done
		elif grep -q Stale "$1/error"; then
			had=
		elif [ -s "$1/error" ]; then
			cat "$1/error" >&2
			exit 1
		else
			keep "$1"
			exit
		fi
	done`

func newReader(t *testing.T, n *daemon.Place, view string, rank int, held bool) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &reader{dir: t.TempDir()}
	if held {
		if err := os.WriteFile(r.dir+"/hold", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.cmd = n.Command(ctx, "bash", "-c", readerLoop, fmt.Sprintf("%s/datasets/%s/rank-%d/queue", n.Mount(), view, rank), r.dir)
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// begun is what the lines said that it has read, local or remote.
func (r *reader) begun() []string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "begun"))
	return strings.Fields(string(text))
}

// Queues of a dataset with two replicas on four hosts are handed out by either
// policy: each batch is finished once. A reader is given all that its host has and
// nobody else took before it is given anything else.
func TestQueuesByEitherPolicy(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 16, c.DataNodes()...)
	m := newTeam(t, c, c.DataNodes())
	m.create("d", k, "--ranks", "4", "--batch", "chunk", "--order", "full")
	for i, policy := range []string{"flow", "probability"} {
		m.Nodes[0].Do("queue", "policy", policy)
		t.Run(policy, func(t *testing.T) {
			m := &team{m.Team, t, c}
			m.together(k, fmt.Sprintf("d@epoch=%d", 2*i), policy)
			m.alone(k, fmt.Sprintf("d@epoch=%d", 2*i+1), policy)
		})
	}
}

// together has a reader on each host work a queue off.
func (m *team) together(k *corpus, view, policy string) {
	m.t.Helper()
	var readers []*reader
	for rank, n := range m.Nodes {
		readers = append(readers, newReader(m.t, n, view, rank, false))
	}
	m.finished(k, view, policy, readers)
	local, all := 0, 0
	for _, r := range readers {
		all += len(r.begun())
		local += strings.Count(strings.Join(r.begun(), " "), "local")
	}
	m.t.Logf("%s: %d of %d lines were local", policy, local, all)
	if all < len(m.Nodes) || local == 0 {
		m.t.Errorf("%d of %d lines were local", local, all)
	}
}

// alone has a reader do nearly all of a queue, as the others hold a batch each: it
// comes to the end of what its host has, and then to the rest.
func (m *team) alone(k *corpus, view, policy string) {
	m.t.Helper()
	var readers []*reader
	for rank, n := range m.Nodes[1:] {
		r := newReader(m.t, n, view, rank+1, true)
		eventually.Within(m.t, patience, "it has a batch", func() bool { return len(r.begun()) == 1 })
		readers = append(readers, r)
	}
	one := newReader(m.t, m.Nodes[0], view, 0, false)
	rest := m.batches(view) - uint64(len(readers))
	eventually.Within(m.t, patience, "it has had the rest", func() bool { return uint64(len(one.begun())) >= rest })
	for _, r := range readers {
		if err := os.Remove(r.dir + "/hold"); err != nil {
			m.t.Fatal(err)
		}
	}
	m.finished(k, view, policy, append(readers, one))
	words := strings.Join(one.begun()[:rest], " ")
	if !strings.HasPrefix(words, "local ") || !strings.HasSuffix(words, " remote") || strings.Contains(words, "remote local") {
		m.t.Errorf("%s: what its host has does not come first: %s", policy, words)
	}
}

// batches is how many a view has.
func (m *team) batches(view string) (n uint64) {
	m.t.Helper()
	var q struct{ Batches uint64 }
	m.queue(view, &q)
	return q.Batches
}

func (m *team) queue(view string, q any) {
	m.t.Helper()
	text := m.Nodes[0].Do("--json", "queue", "show", view)
	if err := json.Unmarshal([]byte(text), q); err != nil {
		m.t.Fatalf("%v: %s", err, text)
	}
}

// finished waits for readers to come to the end, and checks that what they have
// finished together is the corpus, each line once.
func (m *team) finished(k *corpus, view, policy string, readers []*reader) {
	m.t.Helper()
	var all strings.Builder
	for _, r := range readers {
		if err := r.cmd.Wait(); err != nil {
			m.t.Errorf("a reader: %v", err)
		}
		text, _ := os.ReadFile(filepath.Join(r.dir, "bytes"))
		all.Write(text)
	}
	if (&corpus{text: []byte(all.String())}).sorted() != k.sorted() {
		m.t.Errorf("%s by %s: the %d bytes that were finished are not the source's %d, each line once", view, policy, all.Len(), len(k.text))
	}
	var q struct {
		Policy        string
		Batches, Done uint64
	}
	if m.queue(view, &q); q.Policy != policy || q.Done != q.Batches || q.Batches == 0 {
		m.t.Errorf("%s, to be handed out by %s, is %+v", view, policy, q)
	}
}
