package views

import (
	"slices"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta"
)

// A dataset of 768 chunks of 64 KiB, four times what the nodes keep together: a
// shuffle of all is warned of, the window that the warning names is not, and
// neither is what has no chunks to keep.
func TestShuffleOfMoreThanTheCaches(t *testing.T) {
	k := catalogtest.New(t, 1)
	k.Up()
	n := viewsOf(t, k, "order=full,batch=64", 6554, slices.Repeat([][]string{{"a"}}, 768)...)
	d := n.dataset(t) // of 16 MiB of memory 12 are for chunks
	said := func(options string) string {
		v, err := d.Default.With(options)
		if err != nil {
			t.Fatal(err)
		}
		return n.Warnings(v, d.Version)["order"]
	}
	full := said("order=full")
	if !strings.Contains(full, "order=full comes back") || !strings.Contains(full, "fetched by itself") {
		t.Errorf("a shuffle of four times the caches: %q", full)
	}
	_, rest, ok := strings.Cut(full, "--order ")
	window, _, _ := strings.Cut(rest, " ")
	if o, err := meta.ParseOrder(window); !ok || err != nil || o.Window < 1<<16 {
		t.Fatalf("the order that is advised, %q: %v", window, err)
	}
	if s := said("order=window:16000"); s == "" {
		t.Error("in a window of runs of 10 KB a chunk of 64 KiB has no place")
	}
	for _, quiet := range []string{"order=" + window, "order=none", "order=full,batch=chunk"} {
		if s := said(quiet); s != "" {
			t.Errorf("%s: %q", quiet, s)
		}
	}
	if s := said("order=window:2000000"); s == "" {
		t.Error("a window of 20 MB is as wide as the dataset is to the caches")
	}
	d.Version.Source.Remote = false
	if s := said("order=full"); s != "" {
		t.Errorf("records of a local file are always read by themselves: %q", s)
	}
}
