package cache

import (
	"slices"
	"time"
)

// beside bounds the jobs that read one rank of a series and are told apart.
const beside = 8

// Marks are the latest of some steps above zero, and when each was noted.
type marks struct {
	steps [beside]uint64
	at    [beside]time.Time
	next  int
}

func (m *marks) note(step uint64, now time.Time) {
	m.steps[m.next], m.at[m.next] = step, now
	m.next = (m.next + 1) % beside
}

func (m *marks) has(step uint64) bool { return step > 0 && slices.Contains(m.steps[:], step) }

// take forgets a step, and says when it was noted.
func (m *marks) take(step uint64) (at time.Time, ok bool) {
	i := slices.Index(m.steps[:], step)
	if step == 0 || i < 0 {
		return at, false
	}
	m.steps[i] = 0
	return m.at[i], true
}
