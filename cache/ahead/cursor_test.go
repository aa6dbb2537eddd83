package ahead_test

import (
	"testing"

	"rankfs/cache/ahead"
)

// What is missing is found once, again when it is gone, and not where it failed until
// the reader has moved.
func TestCursor(t *testing.T) {
	here := map[uint64]bool{1: true, 2: true}
	c := ahead.Cursor{Run: 1}
	missing := func(window, end uint64) uint64 {
		t.Helper()
		step, ok := c.Missing(window, end, func(step uint64) bool { return here[step] })
		if !ok {
			return 0
		}
		here[step] = true
		return step
	}
	expect := func(what string, got, want uint64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: step %d, want %d", what, got, want)
		}
	}
	c.Open(0)
	expect("first that is not here", missing(4, 10), 3)
	expect("next", missing(4, 10), 4)
	expect("beyond the window", missing(4, 10), 0)
	expect("beyond the end", missing(9, 5), 0)
	c.Gone(0) // the reader has had it
	delete(here, 2)
	c.Gone(2)
	expect("gone", missing(4, 10), 2)
	expect("after that", missing(5, 10), 5)
	delete(here, 5)
	c.BackOff(5)
	expect("failed", missing(8, 10), 0)
	c.Open(1)
	expect("failed, and the reader moved", missing(8, 10), 5)
}

// The window grows with the opens in order, then follows latency and pace, and never
// takes more than the reader's memory.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name         string
		run          int
		pace         float64
		memory, want uint64
	}{
		{"not to be believed yet", -1, 0, 100, 0},
		{"one open", 1, 0, 100, 1},
		{"two in order", 2, 1, 100, 2},
		{"trusted, a source of four steps", 3, 1, 100, 7},
		{"memory for three beside what is read", 3, 1, 5, 3},
		{"no memory", 3, 1, 0, 1},
	} {
		cursor := ahead.Cursor{Run: c.run, Pace: c.pace}
		if got := cursor.Window(1, int64(c.memory), 4, 16, 1000); got != c.want {
			t.Errorf("%s: %d steps, want %d", c.name, got, c.want)
		}
	}
}
