package memory

import (
	"io"
	"os"
	"testing"
)

// What is given back is not there any more; the file of what was given last stays, and has what
// was written.
func TestArenas(t *testing.T) {
	a := Arenas{Dir: t.TempDir()}
	first, err := a.More(10)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := a.More(0); err != nil || len(none) != 0 {
		t.Fatalf("no memory: %d bytes, %v", len(none), err)
	}
	given := a.all[0].file
	a.Free(first)
	if _, err := given.Stat(); err == nil || len(a.all) != 1 {
		t.Errorf("what was given back is there: %v, %d in all", err, len(a.all))
	}
	for _, text := range []string{"other", "words"} {
		b, err := a.More(5)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, text)
	}
	last := a.Last()
	defer last.Close()
	a.FreeAll()
	if b, err := io.ReadAll(last); err != nil || string(b) != "words" {
		t.Errorf("the file that stays has %q: %v", b, err)
	}
	if b, err := MapFile(last, 5); err != nil || string(b) != "words" {
		t.Errorf("mapped it has %q: %v", b, err)
	} else {
		Unmap(b)
	}
	if left, err := os.ReadDir(a.Dir); len(left) > 0 || err != nil {
		t.Errorf("%v have names: %v", left, err)
	}
}
