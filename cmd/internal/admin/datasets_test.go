package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta"
	"rankfs/meta/state"
)

// A dataset whose source has changed is a fault, once a request has looked at the source.
func TestAStaleDatasetIsAFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("not what was indexed"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := catalogtest.New(t, 1)
	a := answering(k, k.Catalog("file:"+path, "ranks=1,batch=1", catalogtest.Index(t, nil, 2, nil)), "a")
	if all := a.datasets.faults(); len(all) != 0 {
		t.Errorf("before the source was looked at: %v", all)
	}
	if sets := a.Datasets(); len(sets) != 1 || sets[0].State != "stale" {
		t.Fatalf("the dataset is %+v", sets)
	}
	all := a.datasets.faults()
	if len(all) != 1 || all[0].kind != "stale" || all[0].of != "d" ||
		!strings.HasPrefix(all[0].what, "dataset d cannot be read: ") || !strings.HasSuffix(all[0].what, "rankfs dataset refresh d") {
		t.Errorf("got %v", all)
	}
}

// Nodes that alone have sources are asked about all of these at the same time: one that
// does not answer is not waited for once for each of its datasets.
func TestDatasetsOfASilentNode(t *testing.T) {
	k := catalogtest.New(t, 2)
	k.Up()
	c := k.Catalog("file:/nowhere/f", "ranks=1,batch=1", catalogtest.Index(t, nil, 2, nil))
	d, _ := k.State.Dataset("d")
	const more = 4
	asked := make(chan struct{}, more)
	all := make(chan struct{})
	k.Asked = func(ctx context.Context, node, call string) error {
		if node != catalogtest.Node(1).ID || call != catalog.CallChanged {
			t.Errorf("node %s is asked for %s", node, call)
		}
		if asked <- struct{}{}; len(asked) == more {
			close(all)
		}
		select {
		case <-all:
			return fmt.Errorf("%w: it is longer", meta.ErrStale)
		case <-ctx.Done():
			return meta.ErrUnavailable
		}
	}
	for i := range more {
		name := fmt.Sprint("e", i)
		text, err := json.Marshal(catalog.Registration{Name: name, Source: "file:/nowhere/f", View: "ranks=1,batch=1", Origin: catalogtest.Node(1).ID})
		if err != nil {
			t.Fatal(err)
		}
		k.Apply(&state.PutDataset{Name: name, Registration: text, Index: d.Index})
	}
	if !c.Update(t.Context()) {
		t.Fatal("the datasets were not loaded")
	}
	for _, d := range answering(k, c, "a").Datasets()[1:] {
		if d.State != "stale" || !strings.Contains(d.Reason, "on host b: ") {
			t.Errorf("%s is %s: %s", d.Name, d.State, d.Reason)
		}
	}
}
