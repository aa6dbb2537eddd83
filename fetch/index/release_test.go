package index_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch/index"
)

// Indexes that the release before has made, with racks and without, are read, and
// are the same when they are made again: nodes of both releases have one hash.
func TestIndexOfTheReleaseBefore(t *testing.T) {
	for name, racks := range map[string]bool{"format1.idx": false, "format2.idx": true} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if x := open(t, path); x.Records() != 10 || (x.Racks() != nil) != racks {
			t.Errorf("%s: %d records, racks %v", name, x.Records(), x.Racks())
		}
		again, err := os.ReadFile(build(t, func(b *index.Builder) {
			f := b.AddFile(index.File{Path: "f", Size: 100, Stamp: "s"})
			b.BeginChunk("host1", "host2")
			b.AddStride(f, 0, 10, 10)
			b.Note("key", "value")
			if racks {
				b.Rack("host1", "/rack1")
			}
		}))
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s: made again it is another (%v)", name, err)
		}
	}
}
