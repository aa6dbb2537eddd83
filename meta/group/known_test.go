package group

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a list of other nodes may hold, also one that a hostile node wrote.
func FuzzKnown(f *testing.F) {
	for _, text := range []string{
		`[{"id":"00000000000000a0","addr":"h:1"}]`, `[{"id":"0","addr":"h:1"}]`, `[{}]`, `{}`, `null`, "",
		"[" + strings.Repeat(`{"id":"00000000000000a0","addr":"h:1"},`, 40) + `{"id":"00000000000000a0","addr":"h:1"}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all := parseKnown(text)
		if len(all) > maxKnown {
			t.Fatalf("%d", len(all))
		}
		path := filepath.Join(t.TempDir(), "known")
		k, err := openKnown(path)
		if err == nil {
			err = k.keep(all)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := openKnown(path)
		if err != nil || !slices.Equal(again.list(), all) {
			t.Fatalf("%v, then %v (%v)", all, again.list(), err)
		}
	})
}
