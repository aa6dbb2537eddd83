package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
)

// A dataset whose source has changed is a fault, once somebody has looked at the source.
func TestAStaleDatasetIsAFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("not what was indexed"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := catalogtest.New(t, 1)
	a := answering(k, k.Catalog("file:"+path, "ranks=1,batch=1", catalogtest.Index(t, nil, 2, nil)), "a")
	if all := a.datasets.wrongs(); len(all) != 0 {
		t.Errorf("before anybody looked: %v", all)
	}
	if sets := a.Datasets(); len(sets) != 1 || sets[0].State != "stale" {
		t.Fatalf("the dataset is %+v", sets)
	}
	all := a.datasets.wrongs()
	if len(all) != 1 || all[0].kind != "stale" || all[0].of != "d" ||
		!strings.HasPrefix(all[0].what, "dataset d cannot be read: ") || !strings.HasSuffix(all[0].what, "rankfs dataset refresh d") {
		t.Errorf("got %v", all)
	}
}
