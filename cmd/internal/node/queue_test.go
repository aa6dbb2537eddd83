package node_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// oneFatal reads a queue, noting in the file done what it is done with, and ends
// at the batch that the file fatal names.
const oneFatal = `exec 3< datasets/d/rank-1/queue; had=
	while read -r path rest <&3; do
		[ -z "$had" ] || echo "$had" >> "$1/done"
		had=${path#*datasets/d/}
		[ "$had" != "$(cat "$1/fatal")" ] || exit 1
	done; echo "$had" >> "$1/done"`

// A batch that ends its readers keeps the others from being read no longer than
// it takes four of these, and a reader that reaches the end is told.
func TestABatchThatEndsItsReaders(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0600); err != nil {
			t.Fatal(err)
		}
	}
	write("source", "one\ntwo\nthree\nfour\nfive\nsix\n")
	write("fatal", "rank-1/batch-000000")
	write("reader", oneFatal)
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + filepath.Join(dir, "source"), Ranks: 2, Batch: "1"})
	read := func() string { return r.shell("sh " + dir + "/reader " + dir + " 2>&1 || echo $?") }
	done := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "done"))
		return string(text)
	}
	for range 4 {
		if got := read(); got != "1\n" {
			t.Fatalf("a reader: %s", got)
		}
	}
	if got, all := done(), 5; strings.Count(got, "\n") != all || strings.Contains(got, "rank-1/batch-000000") {
		t.Errorf("done when the last reader had ended, a batch in hand:\n%s", got)
	}
	const view = "d@epoch=0,ranks=2,seed=0,order=none,step=2,tail=keep,assign=local"
	const blamed = "rank-1/batch-000000: 4 readers gave it back, the last one of rank 1 on "
	if got, want := r.shell("cat datasets/d/rank-0/queue 2>&1 || :"), "cat: datasets/d/rank-0/queue: Owner died\n"; got != want {
		t.Errorf("at the end cat said %q, want %q", got, want)
	}
	if got := r.shell(atTheEnd); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, ": Owner died\n1\n") {
		t.Errorf("two reads at the end: %q", got)
	}
	if got := r.shell("cat .rankfs/queues"); !strings.Contains(got, view+"  rank-1/batch-000000  4 ") {
		t.Errorf("queues:\n%s", got)
	}
	s, err := r.client.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(s.Warnings, "\n"), "queue of d: set aside was "+blamed) {
		t.Errorf("warnings %q, %v", s.Warnings, err)
	}

	q, err := r.client.Queue(t.Context(), "d")
	if err != nil || q.View != "d" || q.Full != view || q.Batches != 6 || q.Done != 5 || q.SetAside != 1 || q.Waiting != 0 || q.Leased != 0 {
		t.Errorf("queue %+v, %v", q, err)
	}
	if len(q.Nodes) != 1 || q.Nodes[0].Read != 5 || len(q.AsideBatches) != 1 || len(q.AsideBatches[0].By) != 4 || q.AsideBatches[0].By[3].Cause != "closed" {
		t.Errorf("queue %+v", q)
	}
	for name, want := range map[string]error{"e": meta.ErrNotExist, "d@epoch=1": meta.ErrNotExist, "d@epoch=x": meta.ErrInvalid} {
		if _, err := r.client.Queue(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("queue of %s: %v", name, err)
		}
	}

	reset := func(aside bool) (control.Queue, error) {
		return r.client.ResetQueue(t.Context(), control.ResetRequest{Name: "d", SetAside: aside})
	}
	if q, err := reset(true); err != nil || q.Done != 5 || q.SetAside != 0 || q.Waiting != 1 || q.Resets != 1 {
		t.Errorf("reset to %+v, %v", q, err)
	}
	write("fatal", "")
	if got := read(); got != "" {
		t.Errorf("a better reader: %s", got)
	}
	if got := done(); strings.Count(got, "\n") != 6 || strings.Count(got, "rank-1/batch-000000") != 1 {
		t.Errorf("done in all:\n%s", got)
	}
	if _, err := reset(true); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("reset of nothing: %v", err)
	}
	if q, err := reset(false); err != nil || q.Done != 0 || q.Waiting != 6 || q.Resets != 2 {
		t.Errorf("reset to %+v, %v", q, err)
	}
	if got := r.shell("wc -l < datasets/d/rank-0/queue"); strings.TrimSpace(got) != "6" {
		t.Errorf("read in the new run: %s lines", got)
	}
	if all, err := r.client.Queues(t.Context()); err != nil || len(all) != 1 || all[0].Done != 6 {
		t.Errorf("queues %+v, %v", all, err)
	}
}

// atTheEnd reads a queue that is over twice.
const atTheEnd = `bash -c 'exec 3< datasets/d/rank-1/queue; read line <&3; read line <&3; echo $?' 2>&1`

// overtaken reads a queue, waits until it is told to go on, and reads on.
const overtaken = `exec 3< datasets/d/rank-0/queue
	read -r path rest <&3; echo "has ${path#*datasets/d/}"
	read -r
	read -r path rest <&3 || echo "it is not its own"
	read -r path rest <&3; echo "has ${path#*datasets/d/}"`

// A reader that has a batch of a queue that is begun again, or dropped, is told that it
// does not count, and gets one of the new run.
func TestAQueueIsBegunAgain(t *testing.T) {
	t.Run("reset", func(t *testing.T) {
		beginsAgain(t, func(ctx context.Context, c *control.Client) {
			if q, err := c.ResetQueue(ctx, control.ResetRequest{Name: "d"}); err != nil || q.Waiting != 2 || q.Leased != 0 {
				t.Errorf("reset to %+v, %v", q, err)
			}
		})
	})
	t.Run("dropped", func(t *testing.T) {
		beginsAgain(t, func(ctx context.Context, c *control.Client) {
			if err := c.DropQueue(ctx, "d"); err != nil {
				t.Error(err)
			}
			if all, err := c.Queues(ctx); err != nil || len(all) != 0 {
				t.Errorf("after that there are %+v, %v", all, err)
			}
			if err := c.DropQueue(ctx, "d"); !errors.Is(err, meta.ErrNotExist) {
				t.Errorf("dropped twice: %v", err)
			}
		})
	})
}

func beginsAgain(t *testing.T, again func(context.Context, *control.Client)) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("one\ntwo\n"), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 1, Batch: "1"})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	reader := r.program(ctx, "bash", "-c", overtaken)
	tell, err := reader.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := reader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Stderr = reader.Stdout
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(says)
	if got, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(got, "has rank-0/batch-") {
		t.Fatalf("%q, %v", got, err)
	}
	again(ctx, r.client)
	if _, err := tell.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err := errors.Join(err, reader.Wait()); err != nil {
		t.Error(err)
	}
	if got := string(rest); !strings.Contains(got, "Stale file handle\nit is not its own\nhas rank-0/batch-") {
		t.Errorf("it went on so: %s", got)
	}
	if got := r.shell("wc -l < datasets/d/rank-0/queue"); strings.TrimSpace(got) != "2" {
		t.Errorf("read in the new run, by others: %s lines", got)
	}
}

// A queue that begins after the policy was changed is handed out by the new one,
// all of it; one that had begun keeps its own, when it is begun again too.
func TestQueuePolicy(t *testing.T) {
	r := run(t, nil)
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("one\ntwo\nthree\n"), 0600); err != nil {
		t.Fatal(err)
	}
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Batch: "1"})
	policy := func(name string) string {
		t.Helper()
		p, err := r.client.QueuePolicy(t.Context(), control.PolicyRequest{Name: name})
		if err != nil || len(p.Names) != 2 {
			t.Fatalf("policy %q: %+v, %v", name, p, err)
		}
		return p.Name
	}
	handedOut := func(view, by string) {
		t.Helper()
		if lines := strings.Count(r.shell("cat datasets/"+view+"/rank-0/queue"), "\n"); lines != 3 {
			t.Errorf("%s handed out %d batches", view, lines)
		}
		if q, err := r.client.Queue(t.Context(), view); err != nil || q.Policy != by || q.Done != 3 {
			t.Errorf("%s: %+v, %v; want it by %s", view, q, err, by)
		}
	}
	if now := policy(""); now != "flow" {
		t.Errorf("the first policy is %q", now)
	}
	handedOut("d", "flow")
	if now := policy("probability"); now != "probability" {
		t.Errorf("changed to %q", now)
	}
	handedOut("d@epoch=1", "probability")
	if _, err := r.client.ResetQueue(t.Context(), control.ResetRequest{Name: "d"}); err != nil {
		t.Fatal(err)
	}
	handedOut("d", "flow")
	if _, err := r.client.QueuePolicy(t.Context(), control.PolicyRequest{Name: "best"}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("policy best: %v", err)
	}
	if now := policy(""); now != "probability" {
		t.Errorf("after all that it is %q", now)
	}
}
