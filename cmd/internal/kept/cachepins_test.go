package kept

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/cache/policy"
)

// A pinboard is what a cache was told.
type pinboard map[[16]byte]policy.Level

func (p pinboard) pin(series [16]byte, at policy.Level) {
	if p[series] = at; at == policy.Source {
		delete(p, series)
	}
}

func newCachePins(t *testing.T, dir string) (*cachePins, pinboard) {
	t.Helper()
	p := make(pinboard)
	s, err := openCachePins(dir, p.pin)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func (s *cachePins) must(t *testing.T, view string, at policy.Level, series ...[16]byte) {
	t.Helper()
	if _, err := s.set(view, at); err != nil {
		t.Fatal(err)
	}
	if series != nil {
		s.meet(view, series)
	}
}

func TestCachePins(t *testing.T) {
	dir := t.TempDir()
	s, p := newCachePins(t, dir)
	a, b, c := [16]byte{1}, [16]byte{2}, [16]byte{3}
	s.must(t, "d@epoch=0", policy.RAM, a, b)
	s.must(t, "e@epoch=0", policy.Disk, b, c)
	if want := (pinboard{a: policy.RAM, b: policy.RAM, c: policy.Disk}); !maps.Equal(p, want) {
		t.Errorf("the cache was told %v, want %v", p, want)
	}
	s.must(t, "d@epoch=0", policy.Source)
	if want := (pinboard{b: policy.Disk, c: policy.Disk}); !maps.Equal(p, want) {
		t.Errorf("without the first %v, want %v", p, want)
	}

	s, p = newCachePins(t, dir)
	if len(p) > 0 || !slices.Equal(s.names(), []string{"e@epoch=0"}) {
		t.Errorf("after a restart %v and %v", p, s.names())
	}
	s.meet("d@epoch=0", [][16]byte{a})
	s.meet("e@epoch=0", [][16]byte{a})
	if want := (pinboard{a: policy.Disk}); !maps.Equal(p, want) {
		t.Errorf("the cache was told %v, want %v", p, want)
	}
}

// The pins of a dataset go with it, and those of no other.
func TestForgetCachePins(t *testing.T) {
	dir := t.TempDir()
	s, p := newCachePins(t, dir)
	a, b := [16]byte{1}, [16]byte{2}
	s.must(t, "d@epoch=0", policy.RAM, a)
	s.must(t, "d@epoch=1", policy.Disk, b)
	s.must(t, "d2@epoch=0", policy.Disk, a)
	if err := s.forget("d"); err != nil {
		t.Fatal(err)
	}
	if want := (pinboard{a: policy.Disk}); !maps.Equal(p, want) || s.has("d") || !s.has("d2") {
		t.Errorf("the cache was told %v, want %v; pinned is %v", p, want, s.names())
	}
	if again, _ := newCachePins(t, dir); len(again.names()) != 1 || !again.has("d2") {
		t.Errorf("after a restart %v are pinned", again.names())
	}
}

// A file that is not what was written is never taken for one.
func TestDamagedCachePins(t *testing.T) {
	whole := encodePins(map[string]policy.Level{"d@epoch=0": policy.RAM, "train@epoch=1": policy.Packed})
	damage := map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)-1], "half": whole[:len(whole)/2], "twice": append(bytes.Clone(whole), whole...),
		"another version": bytes.Replace(whole, []byte("cached 1"), []byte("cached 2"), 1),
		"another tier":    bytes.Replace(whole, []byte("ram d@"), []byte("nvme d@"), 1),
		"large":           bytes.Repeat([]byte("ram d\n"), maxPinsFile),
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		damage[fmt.Sprint("flipped at ", i)] = flipped
	}
	for name, text := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "cached"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			s, _ := newCachePins(t, dir)
			if s.warning() == nil || !strings.Contains(s.warning().Error(), "cached.damaged is corrupt") || len(s.names()) > 0 {
				t.Errorf("%v: %v", s.warning(), s.names())
			}
			if kept, err := os.ReadFile(filepath.Join(dir, "cached.damaged")); err != nil || !bytes.Equal(kept, text) {
				t.Errorf("what was set aside is not what was there: %v", err)
			}
			s.must(t, "d@epoch=0", policy.RAM)
			if again, _ := newCachePins(t, dir); !slices.Equal(again.names(), []string{"d@epoch=0"}) {
				t.Error("what is pinned afterwards is lost")
			}
		})
	}
}

func FuzzCachePins(f *testing.F) {
	f.Add(encodePins(nil))
	f.Add(encodePins(map[string]policy.Level{"d@epoch=0": policy.RAM, "train@epoch=1": policy.Disk}))
	f.Add([]byte("rankfs cached 1\nram ../d\n0000000000000000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		levels, err := decodePins(text)
		if err == nil && !bytes.Equal(encodePins(levels), text) {
			t.Errorf("%q is taken for %v", text, levels)
		}
	})
}
