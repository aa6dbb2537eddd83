package kept

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/cache/trace"
)

func oddTrace(view string) trace.Trace {
	t := trace.Trace{View: view, Steps: 12}
	for range 2 {
		for k := range uint64(12) {
			t.Add(k * 5 % 12)
		}
	}
	return t
}

func newLearnt(t *testing.T, dir string) *learntTraces {
	t.Helper()
	l := new(learntTraces)
	if err := l.open(dir); err != nil {
		t.Fatal(err)
	}
	return l
}

// What was learnt is kept until it is forgotten, and no more than a bounded number.
func TestLearnt(t *testing.T) {
	dir := t.TempDir()
	l := newLearnt(t, dir)
	for i := range maxLearnt + 1 {
		if err := l.keep(fmt.Sprint("d", i), oddTrace("d")); (err != nil) != (i == maxLearnt) {
			t.Errorf("number %d: %v", i, err)
		}
	}
	if err := l.keep("d7", oddTrace("other")); err != nil {
		t.Errorf("learnt anew: %v", err)
	}
	if err := l.remove("d8"); err != nil {
		t.Error(err)
	}
	if err := l.remove("d8"); err == nil {
		t.Error("forgotten twice")
	}
	l = newLearnt(t, dir)
	if found, ok := l.find("d7"); !ok || found.trace.View != "other" || found.graph == nil || found.trace.Opens() != 24 {
		t.Errorf("after a restart %+v", found)
	}
	if _, ok := l.find("d8"); ok || len(l.all()) != maxLearnt-1 {
		t.Errorf("after a restart there are %d", len(l.all()))
	}
}

// A file that is not what was written is never taken for one.
func TestDamagedLearnt(t *testing.T) {
	odd := oddTrace("d")
	whole := []byte(encodeLearnt(&odd))
	damage := map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)-1], "half": whole[:len(whole)/2], "twice": append(bytes.Clone(whole), whole...),
		"large": bytes.Repeat([]byte("run 0 +1 1\n"), maxLearntFile),
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		damage[fmt.Sprint("flipped at ", i)] = flipped
	}
	for name, text := range damage {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "traces"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "traces", "d.trace"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		l := newLearnt(t, dir)
		if w := l.warnings(); len(w) != 1 || !strings.Contains(w[0], "d.damaged is corrupt") || len(l.all()) > 0 {
			t.Errorf("%s: %v, %v", name, w, l.all())
		}
		if kept, err := os.ReadFile(filepath.Join(dir, "traces", "d.damaged")); err != nil || !bytes.Equal(kept, text) {
			t.Errorf("%s: what was set aside is not what was there: %v", name, err)
		}
		if w := newLearnt(t, dir).warnings(); len(w) != 0 {
			t.Errorf("%s: still said after the next start: %v", name, w)
		}
	}
}
