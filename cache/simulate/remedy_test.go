package simulate_test

import (
	"context"
	"errors"
	"testing"

	"rankfs/cache/simulate"
)

func TestRemedies(t *testing.T) {
	s := small()
	s.Costs.Source = 50 * mib // of the 100 MiB/s that are read
	found, err := simulate.Remedies(t.Context(), s, byBelady)
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v", found, err)
	}
	memory, source := found[0], found[1]
	if memory.What != simulate.Memory || source.What != simulate.SourceRate {
		t.Fatalf("got %v", found)
	}
	// What is kept is one run of the order, and the rest comes in another as
	// slowly as ever: half in memory halves the stall, and no more.
	near(t, "memory", memory.Bytes/mib, 1000, 30)
	near(t, "bandwidth", source.Bytes/mib, 100, 5)
	for _, r := range found {
		if r.What == simulate.Memory {
			s.Memory = int64(r.Bytes)
		}
	}
	o := must(t, s, byBelady)
	if e := o.Last(); e.Stalled() > simulate.Calm {
		t.Errorf("with that memory: %+v", e)
	}
}

func TestNoRemedyForWhatDoesNotHelp(t *testing.T) {
	s := small()
	s.Once, s.Costs.Latency, s.Step = true, 1, 0.01 // only fewer questions would help
	found, err := simulate.Remedies(t.Context(), s, byLRU)
	if err != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestRemediesStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Remedies(ctx, small(), byLRU); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
