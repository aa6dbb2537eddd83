package plans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A reader takes batches from a queue. It notes what it has begun, by its path and the
// last word of its line, and keeps the bytes of what it was told that it has finished.
// While a file is there that says how many it may begin it begins no more.
type reader struct {
	cmd *exec.Cmd
	dir string
	t   *testing.T
}

const readerLoop = `
	exec 3< "$0" || exit 1
	had= n=0
	keep() { [ -z "$had" ] || cat "$had" >> "$1/bytes"; }
	while :; do
		while read -r most 2> "$1/error" < "$1/most" && [ $n -ge $most ]; do sleep 0.05; done
		if read -r path size records where <&3 2> "$1/error"; then
			keep "$1" || exit 1
			had=$path
			n=$((n+1))
			echo "$path $where" >> "$1/begun"
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

// newReader is one that may begin so many.
func newReader(t *testing.T, n *daemon.Place, view string, rank, most int) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &reader{dir: t.TempDir(), t: t}
	r.may(most)
	r.cmd = n.Command(ctx, "bash", "-c", readerLoop, fmt.Sprintf("%s/datasets/%s/rank-%d/queue", n.Mount(), view, rank), r.dir)
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// may lets it begin so many in all.
func (r *reader) may(most int) {
	r.t.Helper()
	err := os.WriteFile(r.dir+"/next", fmt.Appendln(nil, most), 0o600)
	if err == nil {
		err = os.Rename(r.dir+"/next", r.dir+"/most")
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// goOn lets it begin all that there is.
func (r *reader) goOn() { r.may(1 << 30) }

// A line is what a reader was given.
type line struct {
	batch string // RANK/BATCH
	local bool   // as it says
}

func (r *reader) begun() (all []line) {
	text, _ := os.ReadFile(filepath.Join(r.dir, "begun"))
	for s := range strings.Lines(string(text)) {
		path, where, whole := strings.Cut(strings.TrimSuffix(s, "\n"), " ")
		if !whole || where != "local" && where != "remote" {
			r.t.Fatalf("a reader was given %q", s)
		}
		all = append(all, line{path[strings.LastIndex(path, "rank-"):], where == "local"})
	}
	return all
}

// next has it begin one more.
func (r *reader) next() line {
	r.t.Helper()
	n := len(r.begun()) + 1
	r.may(n)
	eventually.Within(r.t, patience, "it has a batch", func() bool { return len(r.begun()) == n })
	return r.begun()[n-1]
}

// Queues of a dataset with two replicas on four hosts are handed out by either
// policy: each batch is finished once. A reader is given all that its host has and
// no other took before it is given anything else.
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

// together has a reader on each host, which by turns take all of a queue. Each line is of a
// batch that the reader's host has, as long as there is one that no reader took, so half of
// all lines are local at least, whatever the hosts have.
func (m *team) together(k *corpus, view, policy string) {
	m.t.Helper()
	free := m.holders(view)
	if len(free) < 2*len(m.Nodes) {
		m.t.Fatalf("the hosts of %d batches are known", len(free))
	}
	var readers []*reader
	for rank, n := range m.Nodes {
		readers = append(readers, newReader(m.t, n, view, rank, 0))
	}
	local, all := 0, len(free)
	for turn := 0; len(free) > 0; turn++ {
		host, r := m.Nodes[turn%len(m.Nodes)].Host.Name, readers[turn%len(m.Nodes)]
		var here []string
		for batch, hosts := range free {
			if slices.Contains(hosts, host) {
				here = append(here, batch)
			}
		}
		l := r.next()
		hosts, ok := free[l.batch]
		if !ok {
			m.t.Fatalf("%s: %s was given %s, which is not free", policy, host, l.batch)
		}
		if is := slices.Contains(hosts, host); l.local != is || is != (len(here) > 0) {
			m.t.Errorf("%s: %s was given %s of %v, local: %v, while no reader had %v", policy, host, l.batch, hosts, l.local, here)
		}
		if l.local {
			local++
		}
		delete(free, l.batch)
	}
	m.t.Logf("%s: %d of %d lines were local", policy, local, all)
	if 2*local < all {
		m.t.Errorf("%s: %d of %d lines were local", policy, local, all)
	}
	for _, r := range readers {
		r.goOn()
	}
	m.finished(k, view, policy, readers)
	if n := m.batches(view); n != uint64(all) {
		m.t.Errorf("%s: the queue is of %d batches, and %d were free", policy, n, all)
	}
}

// holders are the hosts that have each batch of a view, by RANK/BATCH, once it is planned.
func (m *team) holders(view string) map[string][]string {
	m.t.Helper()
	n := m.Nodes[0]
	out := n.Must("sh", "-c", `cd "$0" && cat rank-0/batch-000000 > /dev/null && for b in rank-*/batch-*[0-9]; do echo "$b $(getfattr --only-values -n user.rankfs.hosts $b)" || exit; done`, n.Mount()+"/datasets/"+view)
	all := make(map[string][]string)
	for s := range strings.Lines(out) {
		batch, hosts, _ := strings.Cut(strings.TrimSuffix(s, "\n"), " ")
		all[batch] = strings.Split(hosts, ",")
	}
	return all
}

// alone has a reader do nearly all of a queue, as the others hold a batch each: it
// comes to the end of what its host has, and then to the rest.
func (m *team) alone(k *corpus, view, policy string) {
	m.t.Helper()
	var readers []*reader
	for rank, n := range m.Nodes[1:] {
		r := newReader(m.t, n, view, rank+1, 0)
		r.next()
		readers = append(readers, r)
	}
	one := newReader(m.t, m.Nodes[0], view, 0, 1<<30)
	rest := m.batches(view) - uint64(len(readers))
	eventually.Within(m.t, patience, "it has had the rest", func() bool { return uint64(len(one.begun())) >= rest })
	for _, r := range readers {
		r.goOn()
	}
	m.finished(k, view, policy, append(readers, one))
	had := one.begun()[:rest]
	local := slices.IndexFunc(had, func(l line) bool { return !l.local })
	if local < 1 || slices.ContainsFunc(had[local:], func(l line) bool { return l.local }) {
		m.t.Errorf("%s: what its host has does not come first: %v", policy, had)
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
