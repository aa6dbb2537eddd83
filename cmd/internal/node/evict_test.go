package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"rankfs/cmd/internal/control"
)

// An eviction names a view as what else is asked of it does, and says whether all views of
// its dataset went with it.
func TestEvictionsNameViews(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcde\n"), 400), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Batch: "100"})
	for _, tt := range []struct {
		name string
		all  bool
	}{{"d", true}, {"d@epoch=0", false}, {"d@order=full,epoch=3", false}} {
		r.shell("cat datasets/d/rank-0/batch-000000 datasets/d@order=full,epoch=3/rank-0/batch-000000")
		x, err := r.client.Explain(t.Context(), control.ExplainRequest{Name: tt.name})
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.client.Evict(t.Context(), tt.name)
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if tt.all {
			want = 2
		}
		if n := e.Evicted.Batches + e.Stayed.Batches; e.ViewName != x.ViewName || e.AllViews != tt.all || n < want {
			t.Errorf("%s: %+v, want %d batches or more of %+v", tt.name, e, want, x.ViewName)
		}
	}
}
