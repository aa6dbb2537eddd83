package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/test/eventually"
)

// Every open of a rank is accounted for, by the view that it reads, whatever
// the epoch and the name; what is not a batch is not.
func TestLoad(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcde\n"), 400), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 2, Batch: "100"})
	r.create(control.CreateRequest{Name: "d2", Source: "file:" + source, Batch: "100"})
	r.shell(`cd datasets
		cat d/rank-0/batch-000000 d@epoch=1/rank-0/batch-000001 d@ranks=2,epoch=2/rank-1/batch-000000
		cat d@order=full/rank-0/batch-000000 d@epoch=7,order=full,seed=0/rank-0/batch-000000
		cat d2/rank-0/batch-000003 d/rank-0/*.idx d/dataset.json d/locality; ls -l d@ranks=3/rank-0`)

	load := func(q control.LoadRequest) map[string]control.Job {
		t.Helper()
		l, err := r.client.Load(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		jobs := make(map[string]control.Job)
		for _, j := range l.Jobs {
			jobs[j.View] = j
		}
		return jobs
	}
	all := load(control.LoadRequest{})
	for name, opens := range map[string]uint64{"d": 3, "d@order=full": 2, "d2": 1} {
		j, ok := all[name]
		if a := j.Total; !ok || a.Opens != opens || a.Ready+a.Waited != opens || a.Bytes != int64(opens)*1600 || a.Stalled > a.RankSeconds {
			t.Errorf("%s: %+v, want %d opens", name, a, opens)
		}
		if j.Ranks != nil || j.Facts == nil || j.Facts.Bytes != 6400 || j.Facts.Batch != 1600 || j.Facts.Source.Bytes == 0 || j.Facts.Again != (name != "d@order=full") {
			t.Errorf("%s: %+v, view %+v", name, j, j.Facts)
		}
	}
	if len(all) != 3 {
		t.Errorf("jobs %v, want 3", all)
	}
	if got := load(control.LoadRequest{Name: "d"}); len(got) != 2 || got["d"].Here != 2 {
		t.Errorf("of dataset d: %v", got)
	}
	got := load(control.LoadRequest{Name: "d@epoch=4,order=full", Ranks: true})
	if j := got["d@order=full"]; len(got) != 1 || len(j.Ranks) != 1 || j.Ranks[0].Opens != 2 {
		t.Errorf("of a view: %+v", got)
	}
	if _, err := r.client.Load(t.Context(), control.LoadRequest{Name: "e"}); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("of no dataset: %v", err)
	}
	s, err := r.client.Status(t.Context())
	if c := s.Counters; err != nil || c.Waits.Sum() <= 0 || c.WaitSeconds-c.Waits.Sum() > 1e-6 || c.Waits.Sum()-c.WaitSeconds > 1e-6 {
		t.Errorf("status: %+v, %v", c, err)
	}
	if err := r.client.Remove(t.Context(), "d2"); err != nil {
		t.Fatal(err)
	}
	if j := load(control.LoadRequest{})["d2"]; j.Total.Opens != 1 || j.Facts != nil {
		t.Errorf("of a dataset that is gone: %+v", j)
	}
}

// A rank that opens batches in an order of its own is one that reads, however many readers
// it might be, and one job has it though it goes through several epochs.
func TestReadingRanks(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcde\n"), 400), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	request := control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 1, Batch: "4"}
	r.create(request)
	order := rand.New(rand.NewPCG(1, 1))
	reads := func(views ...string) {
		t.Helper()
		var files strings.Builder
		for _, view := range views {
			for _, step := range order.Perm(100) {
				fmt.Fprintf(&files, " datasets/%s/rank-0/batch-%06d", view, step)
			}
		}
		r.shell("cat" + files.String() + " > /dev/null")
	}
	reading := func(want int, views ...string) {
		t.Helper()
		// What was opened a minute ago counts no more, so this is as often as it takes.
		eventually.True(t, fmt.Sprintf("%d ranks read %v", want, views), func() bool {
			reads(views...)
			s, err := r.client.Status(t.Context())
			if n := s.Counters.Readers; err != nil || n > want {
				t.Fatalf("of %v: %d ranks read, want %d: %v", views, n, want, err)
			}
			return s.Counters.Readers == want
		})
	}
	reading(1, "d", "d@epoch=1")
	reading(2, "d", "d@order=full", "d@order=full,epoch=1")
	if err := r.client.Remove(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	r.create(request)
	reading(1, "d")
}
