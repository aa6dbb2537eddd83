package disks

import "testing"

// What a disk answers after it was given up goes nowhere: that memory may be
// another's by then.
func TestNothingIsGivenToWhoLeft(t *testing.T) {
	mem := []byte("mine")
	j := &job{}
	if !j.give(mem, []byte("MI")) || string(mem) != "MIne" {
		t.Errorf("got %q", mem)
	}
	if _, done := j.forsake(0); !done {
		t.Fatal("the job is not given up")
	}
	if j.give(mem, []byte("late")) || string(mem) != "MIne" {
		t.Errorf("got %q from a job that was given up", mem)
	}
}
