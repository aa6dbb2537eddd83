package main

import "testing"

// A view is found in a name, in a path through its mount, and in one that leads there by
// another way; what is not below the datasets of a mount is none.
func TestViewIn(t *testing.T) {
	for _, c := range []struct{ path, mount, name, below string }{
		{"d@epoch=1", "/mnt", "d@epoch=1", ""},
		{"d/rank-0/", "/mnt", "d", "rank-0"},
		{"/mnt/datasets/d/rank-0", "/mnt", "d", "rank-0"},
		{"/link/datasets/d", "/mnt", "d", ""},
		{"mnt/datasets/d", "/mnt", "d", ""},
		{"/datasets/mnt/datasets/d/chunks", "/datasets/mnt", "d", "chunks"},
		{"/mnt/datasets/datasets/rank-0", "/mnt", "datasets", "rank-0"},
		{"/etc/passwd", "/mnt", "", "etc/passwd"},
		{"/mnt/datasets/", "/mnt", "", ""},
	} {
		if name, below := viewIn(c.path, c.mount); name != c.name || below != c.below {
			t.Errorf("%s of %s: view %q and %q, want %q and %q", c.path, c.mount, name, below, c.name, c.below)
		}
	}
}
