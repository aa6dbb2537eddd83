package index_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// An index without racks is what it was before there were any: old ones can be
// read, and are the same when they are made again.
func TestFormatWithoutRacks(t *testing.T) {
	path := build(t, func(b *index.Builder) {
		f := b.AddFile(index.File{Path: "f", Size: 100, Stamp: "s"})
		b.BeginChunk("host1", "host2")
		b.AddStride(f, 0, 10, 10)
		b.Note("key", "value")
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "21f2d51d"
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:4]) != want || text[8] != 1 {
		t.Errorf("format %d, SHA-256 %x..., want 1, %s", text[8], sum[:4], want)
	}
	if x := open(t, path); x.Racks() != nil {
		t.Errorf("racks %v", x.Racks())
	}
}

func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(build(t, small))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "index")
	refuse := func(what string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := index.Open(path)
		if !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", what, err)
		}
		if err == nil {
			x.Close()
		}
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1 << (i % 8)
		refuse(fmt.Sprint("flip ", i), flipped)
		refuse(fmt.Sprint("cut ", i), whole[:i])
	}
	refuse("longer", append(bytes.Clone(whole), 0))
}

// Whatever is in the file, an index that opens can be walked.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(build(f, small))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	none, err := os.ReadFile(build(f, func(*index.Builder) {}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(none)
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		index.Seal(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := index.Open(path)
		if err != nil {
			if !errors.Is(err, meta.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		defer x.Close()
		walk(t, x)
	})
}
