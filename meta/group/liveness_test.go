package group

import (
	"testing"
	"time"
)

// A node is dead when it was asked for long enough and did not answer, however often this
// one was late meanwhile; and what it was late itself counts against no other.
func TestARoundThatWasLateCountsAgainstNoNode(t *testing.T) {
	const dead, look, tick = 5 * time.Second, 2 * time.Second, 500 * time.Millisecond
	type round struct {
		took    time.Duration
		answers bool
	}
	times := func(n int, r round) (all []round) {
		for range n {
			all = append(all, r)
		}
		return all
	}
	refused, silent, stopped := round{tick, false}, round{tick + look, false}, round{time.Hour, false}
	for _, tt := range []struct {
		name   string
		rounds []round
		lives  bool
	}{
		{"it was not asked yet", nil, true},
		{"it refuses", times(9, refused), true},
		{"and refuses", times(10, refused), false},
		{"it is silent", times(2, silent), true},
		{"and silent", times(3, silent), false},
		{"this node was stopped in a round", times(1, stopped), true},
		{"and in the next", times(2, stopped), true},
		{"it does not answer any more, and is dead all the same", times(3, stopped), false},
		{"it answers when this node was stopped", append(times(2, silent), round{time.Hour, true}), true},
		{"and counts from there", append(append(times(2, silent), round{tick, true}), times(2, silent)...), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			s := &liveness{dead: dead, max: look}
			s.begin([]string{"a", "b"}, now)
			for _, r := range tt.rounds {
				now = now.Add(r.took)
				s.saw("b", heartbeat{}, now)
				if r.answers {
					s.saw("a", heartbeat{}, now)
				}
				s.looked(now)
			}
			if got := s.live("a"); got != tt.lives || !s.live("b") {
				t.Errorf("lives: %v; the other, which always answers: %v", got, s.live("b"))
			}
			if s.live("c") {
				t.Error("a node that is not known lives")
			}
		})
	}
}
