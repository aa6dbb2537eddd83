package catalog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A node says of a source whether it has changed if the source is on its own disks, and of
// no other one: a path of another node may be anything here. A question that is none is
// refused.
func TestWhoSaysThatASourceChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntwo\n")
	src, err := fetch.Open("file:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	index := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, index, nil); err != nil {
		t.Fatal(err)
	}
	nodes := []plan.Node{{ID: "a", Host: "a", Up: true}, {ID: "b", Host: "b", Up: true}}
	hash := strings.Repeat("5", 64)
	of := func(self string) *Catalog {
		t.Helper()
		o := &plan.Owners{Self: self}
		o.Follow(nodes)
		v, err := batch.Open(index, batch.Config{Source: "file:" + path, Origin: "a", Hash: hash, Owners: o})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.Opened().Close() })
		c := &Catalog{}
		c.mu.byName = map[string]*Dataset{"d": {Version: v}}
		return c
	}
	has, other := of("a"), of("b")
	ask := func(c *Catalog, index string) error {
		q, _ := json.Marshal(indexed{index})
		return c.Changed(t.Context(), q)
	}
	if err := ask(has, hash); err != nil {
		t.Errorf("as it was: %v", err)
	}
	write("one\ntwo\nthree\n")
	if err := ask(has, hash); !errors.Is(err, meta.ErrStale) {
		t.Errorf("changed: %v", err)
	}
	if err := ask(other, hash); !errors.Is(err, meta.ErrUnavailable) || errors.Is(err, meta.ErrStale) {
		t.Errorf("at a node that does not have it: %v", err)
	}
	if err := ask(has, strings.Repeat("6", 64)); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("of another dataset: %v", err)
	}
	for _, q := range []string{``, `[]`, `{}`, `{"index":"5"}`, `{"index":"` + hash + hash + `"}`, `{"index":"` + strings.Repeat("x", 64) + `"}`} {
		if err := has.Changed(t.Context(), json.RawMessage(q)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("question %q: %v", q, err)
		}
	}
}
