package cache

import "time"

// A activeSpan is a time of opens: of a reader, or of a tenant.
type activeSpan struct{ began, seen time.Time } // with the first of them, and with the last one

// rests reports whether there was none since for longer than the activeSpan was, and for longer than
// its first steps may take. So one that has been at work for an hour may pause for an hour; one that was through
// at once makes way soon.
func (s *activeSpan) rests(now time.Time) bool {
	silent := now.Sub(s.seen)
	return silent > restsAfter && silent > s.seen.Sub(s.began)
}

// restsAfter is longer than the first steps of most jobs: from the third on the activeSpan is.
const restsAfter = 200 * time.Millisecond
