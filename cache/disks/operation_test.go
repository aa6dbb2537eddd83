package disks

import (
	"errors"
	"os"
	"testing"
)

// What a disk answers after it was given up goes nowhere: that memory may be
// another's by then.
func TestNothingIsGivenToWhoLeft(t *testing.T) {
	mem := []byte("mine")
	op := &operation{}
	if !op.give(mem, []byte("MI")) || string(mem) != "MIne" {
		t.Errorf("got %q", mem)
	}
	if _, done := op.forsake(0); !done {
		t.Fatal("the operation is not given up")
	}
	if op.give(mem, []byte("late")) || string(mem) != "MIne" {
		t.Errorf("got %q from an operation that was given up", mem)
	}
}

// Nor is more taken from memory that may be another's by then.
func TestNothingIsWrittenOfWhoLeft(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, op := &File{file: file}, &operation{}
	op.forsake(0)
	if err := f.write(op, make([]byte, 9<<20), 0); !errors.Is(err, errStuck) {
		t.Errorf("got %v", err)
	}
	if size, err := f.Size(); err != nil || size != 4<<20 {
		t.Errorf("%d bytes are written, want those of one step: %v", size, err)
	}
}
