package queue

import (
	"testing"
	"time"
)

const second = float64(time.Second)

// A reader may hold a unit in hand while it works on another. The second one's
// time begins when the first is done.
func TestUnitsInHand(t *testing.T) {
	s, err := New(2, func(int) []Holder { return []Holder{{Node: 0, Bytes: 1}} }, PolicyFlow, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := s.readers.join(0, 0, 0)
	s.Began(0, 0, 0)
	s.Began(0, 0, 1)
	if ends := s.readers.ends(0, w, 1) - s.readers.ends(0, w, 0); ends != s.readers.takes(w, false) {
		t.Errorf("the second takes %v, want %v", ends, s.readers.takes(w, false))
	}
	s.Finished(1*time.Second, 0, 0)
	s.Finished(2*time.Second, 0, 1)
	if w.pace.n != 2 || w.pace.mean != second {
		t.Errorf("%+v, want a mean of a second", w.pace)
	}
}

// What distance costs is learnt from those who also worked nearby.
func TestDistanceIsLearnt(t *testing.T) {
	c := &readers{}
	w, stranger := c.join(0, 0, 0), c.join(0, 1, 1)
	if got := c.further(); got != second {
		t.Errorf("%v further at first", got)
	}
	c.learn(2*time.Second, w, lease{})
	c.learn(5*time.Second, w, lease{far: true})
	if got := c.further(); got != 3*second {
		t.Errorf("%v further, want 5 - 2 s", got)
	}
	c.learn(4*time.Second, stranger, lease{far: true})
	if got := c.near(stranger); got != 2*second {
		t.Errorf("%v near for a reader that was never near: want half, at least", got)
	}
}

// An estimate comes from the reader, or its node, or all readers, or from none.
func TestEstimates(t *testing.T) {
	c := &readers{}
	w := c.join(0, 0, 0)
	if got := c.near(w); got != second {
		t.Errorf("%v before any reader has finished a unit", got)
	}
	c.learn(3*time.Second, w, lease{})
	for _, tt := range []struct {
		id, node int
		want     float64
	}{{1, 0, 3}, {2, 1, 3}} {
		if got := c.near(c.join(0, tt.id, tt.node)); got != tt.want*second {
			t.Errorf("reader %d on node %d: %v", tt.id, tt.node, got)
		}
	}
	c.learn(5*time.Second, c.byID[2], lease{})
	if got := c.near(c.join(0, 3, 0)); got != 3*second {
		t.Errorf("%v on node 0, after 5 s on node 1", got)
	}
}
