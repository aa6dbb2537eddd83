package pressure_test

import (
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/pressure"
)

const gib = 1 << 30

// sampleOf is a machine or group in which tasks stall for a part of the time.
func sampleOf(limit, used, held int64, stall float64) pressure.Sample {
	g := pressure.Group{Limit: limit, Used: used, Stall: pressure.Stall{Mean: stall}}
	return pressure.Sample{Group: g, Held: held, Recent: stall}
}

func TestAllowed(t *testing.T) {
	const budget, notch = 8 * gib, gib / 8
	justStalled := sampleOf(64*gib, 10*gib, 5*gib, 0)
	justStalled.Recent = 0.2
	hadStalled := sampleOf(64*gib, 10*gib, 5*gib, 0.2)
	hadStalled.Recent = 0
	for _, row := range []struct {
		name       string
		s          pressure.Sample
		last, want int64
	}{
		{"a machine with room", sampleOf(64*gib, 10*gib, 0, 0), budget, budget},
		{"others leave half of it", sampleOf(16*gib, 15*gib, 4*gib, 0), budget, 4 * gib},
		{"a limit below the budget", sampleOf(4*gib, 0, 0, 0), budget, 4*gib - gib/4},
		{"over the limit", sampleOf(4*gib, 5*gib, 3*gib, 0), budget, 2*gib - 2*notch},
		{"over the limit without us", sampleOf(4*gib, 5*gib, 0, 0), budget, 0},
		{"what is held was touched elsewhere first", sampleOf(4*gib, gib, 6*gib, 0), budget, 4*gib - gib/4},
		{"the last notch to all of it", sampleOf(64*gib, 10*gib, 4*gib, 0), budget - notch, budget},
		{"half a notch more is none", sampleOf(16*gib, 11*gib, 4*gib-notch/2, 0), 8*gib - notch, 8*gib - notch},
		{"nor is it before all of it", sampleOf(16*gib, 11*gib, 4*gib+notch/2, 0), 8*gib - notch, 8*gib - notch},
		{"room comes back slowly", sampleOf(64*gib, 10*gib, 4*gib, 0), 4 * gib, 4*gib + 4*notch},
		{"tasks stall: down from what is held", sampleOf(64*gib, 10*gib, 5*gib, 0.15), budget, 5*gib - notch},
		{"tasks stall twice as long", sampleOf(64*gib, 10*gib, 5*gib, 0.2), budget, 5*gib - 2*notch},
		{"tasks do nothing else", sampleOf(64*gib, 10*gib, 5*gib, 1), budget, 5*gib - 4*notch},
		{"tasks stall since a moment ago", justStalled, budget, 5*gib - 2*notch},
		{"tasks stalled and no longer do: no more, no less", hadStalled, 5 * gib, 5 * gib},
		{"tasks stall a bit: no more", sampleOf(64*gib, 10*gib, 5*gib, 0.05), 6 * gib, 6 * gib},
		{"tasks stall, we are small", sampleOf(64*gib, 10*gib, gib, 0.9), 2 * gib, 2 * gib},
		{"tasks stall, and there is no room", sampleOf(4*gib, 5*gib, 3*gib, 0.9), budget, 2*gib - 2*notch},
	} {
		if got := pressure.Allowed(row.s, budget, row.last); got != row.want {
			t.Errorf("%s: %.3f GiB, want %.3f", row.name, float64(got)/gib, float64(row.want)/gib)
		}
	}
}

func TestAhead(t *testing.T) {
	for _, row := range []struct {
		name       string
		s          pressure.Sample
		last, want bool
	}{
		{"a machine with room", sampleOf(64*gib, 10*gib, 0, 0), false, true},
		{"full up to the reserve", sampleOf(64*gib, 63*gib, 0, 0), false, true},
		{"a bit of the reserve is gone", sampleOf(64*gib, 63*gib+gib/4, 0, 0), true, true},
		{"it was worse before", sampleOf(64*gib, 63*gib+gib/4, 0, 0), false, false},
		{"most of the reserve is gone", sampleOf(64*gib, 63*gib+3*gib/4, 0, 0), true, false},
		{"tasks stall", sampleOf(64*gib, 10*gib, 0, 0.1), true, false},
		{"tasks stall a bit", sampleOf(64*gib, 10*gib, 0, 0.05), true, true},
		{"tasks stall less", sampleOf(64*gib, 10*gib, 0, 0.05), false, false},
	} {
		if got := pressure.Ahead(row.s, row.last); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func drawSample(t *rapid.T) pressure.Sample {
	return sampleOf(rapid.Int64Range(4, 1<<50).Draw(t, "limit"), rapid.Int64Range(0, 1<<50).Draw(t, "used"),
		rapid.Int64Range(0, 1<<40).Draw(t, "held"), rapid.Float64Range(0, 1).Draw(t, "stall"))
}

// A cache that uses what it is allowed never reaches the limit, if other processes stay as they
// are, whichever of them is charged for the memory; what it is allowed is within the budget, and
// less room or more stalls never allow more.
func TestAllowedBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(0, 1<<40).Draw(t, "budget")
		last := rapid.Int64Range(0, budget).Draw(t, "last")
		s := drawSample(t)
		got := pressure.Allowed(s, budget, last)
		if got < 0 || got > budget {
			t.Fatalf("%d of %d", got, budget)
		}
		if others := max(s.Used-s.Held, 0); got > 0 && others+got >= s.Limit {
			t.Errorf("%d is allowed beside %d, the limit is %d", got, others, s.Limit)
		}
		worse := s
		worse.Used += rapid.Int64Range(0, 1<<40).Draw(t, "more")
		if less := pressure.Allowed(worse, budget, last); less > got {
			t.Errorf("%d with less room, %d with more", less, got)
		}
		worse = s
		worse.Recent = rapid.Float64Range(s.Recent, 1).Draw(t, "stalls")
		if less := pressure.Allowed(worse, budget, last); less > got {
			t.Errorf("%d with more stalls, %d with less", less, got)
		}
	})
}

// What changes by less than a notch and back changes nothing: once at rest, it
// stays so, also where there is room for just about all of the budget.
func TestAllowedComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const budget, limit = 8 * gib, 20 * gib
		others := rapid.OneOf(rapid.Int64Range(0, limit), rapid.Int64Range(limit-budget-2*gib, limit-budget)).Draw(t, "others")
		last := rapid.Int64Range(0, budget).Draw(t, "last")
		wave := func(i int) int64 { return int64(i%2) * (budget/64 - 1) }
		at := func(i int) int64 {
			return pressure.Allowed(sampleOf(limit, others+last+wave(i), last, 0), budget, last)
		}
		for i := range 200 {
			last = at(i)
		}
		rested := last
		for i := range 20 {
			if last = at(i); last != rested {
				t.Fatalf("%d, then %d", rested, last)
			}
		}
	})
}
