package ahead_test

import (
	"testing"

	"rankfs/cache/ahead"
)

// What is worth having ahead follows latency and pace; a quick source needs little.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name          string
		latency, pace float64
		fills         int
		want          int64
	}{
		{"quick source", 0.001, 0.01, 2, 3},
		{"as slow as the reader", 0.01, 0.01, 2, 4},
		{"far source", 0.5, 0.01, 64, 53},
		{"far source, of which little is made at a time", 0.5, 0.01, 2, 16},
		{"reader that does nothing", 0.5, 0, 64, 3},
		{"reader that never waits", 10, 1e-9, 64, 128},
	} {
		if n := ahead.Steps(c.latency, c.pace, c.fills); n != c.want {
			t.Errorf("%s: %d steps, want %d", c.name, n, c.want)
		}
	}
}

// converge has a source with a latency and a rate serve as many fills at a time as
// is said, for so many fills, and returns the least and the most at a time of the last
// half.
func converge(fills int, latency, perSecond float64, waited bool) (low, high int) {
	f := ahead.New(2)
	now := 0.0
	for i := range fills {
		now += max(latency/float64(f.AtOnce()), 1/perSecond)
		f.Done(now, 1, waited)
		if i == fills/2 {
			low, high = f.AtOnce(), f.AtOnce()
		}
		low, high = min(low, f.AtOnce()), max(high, f.AtOnce())
	}
	return low, high
}

// As many fills are done at a time as make a source give more.
func TestFills(t *testing.T) {
	for _, c := range []struct {
		name            string
		latency, perSec float64
		waited          bool
		atLeast, atMost int
	}{
		{"far source", 0.1, 1e9, true, 40, 64},
		{"far source that no reader waits for", 0.1, 1e9, false, 2, 2},
		{"source whose rate two use up", 0.1, 20, true, 2, 3},
		{"source whose rate ten use up", 0.1, 100, true, 8, 24},
		{"quick source", 1e-5, 1000, true, 2, 3},
	} {
		if low, high := converge(20_000, c.latency, c.perSec, c.waited); low < c.atLeast || high > c.atMost {
			t.Errorf("%s: %d to %d fills at a time, want %d to %d", c.name, low, high, c.atLeast, c.atMost)
		}
	}
}

// A source whose rate two use up, of which less is wanted at times: that is no reason to do
// more at a time, whatever share of the time it is.
func TestFillsWhereLessIsWantedAtTimes(t *testing.T) {
	for _, spell := range []int{3, 5, 8, 13, 21, 40} { // fills that are waited for, then as many that are not
		f := ahead.New(2)
		now, high := 0.0, 0
		for i := range 20_000 {
			waited := i/spell%2 == 0
			if now += 0.05; !waited {
				now += 0.02
			}
			f.Done(now, 1, waited)
			high = max(high, f.AtOnce())
		}
		if high > 4 {
			t.Errorf("spells of %d: up to %d fills at a time", spell, high)
		}
	}
}
