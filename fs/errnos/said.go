package errnos

import (
	"sync"
	"time"
)

// said is the set of lines logged in the second that began at since, and in the
// second before it: the kernel's repeated request may fall into the next second. The lock
// guards all of it; nothing is logged under it.
type said struct {
	mu struct {
		sync.Mutex
		since         time.Time
		lines, before map[string]bool
		left          int // lines left out since then
	}
}

// again reports whether the line was logged already, or the second has its most
// lines, and enters the line otherwise. In a new second it also returns how many
// lines the last one left out.
func (s *said) again(line string, most int, now time.Time) (again bool, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lines == nil || now.Sub(s.mu.since) > time.Second {
		left = s.mu.left
		s.mu.before = s.mu.lines
		if now.Sub(s.mu.since) >= 2*time.Second {
			s.mu.before = nil
		}
		s.mu.since, s.mu.lines, s.mu.left = now, make(map[string]bool), 0
	}
	if s.mu.lines[line] || s.mu.before[line] {
		return true, left
	}
	if len(s.mu.lines) >= most {
		s.mu.left++
		return true, left
	}
	s.mu.lines[line] = true
	return false, left
}
