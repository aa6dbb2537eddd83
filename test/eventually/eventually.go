// Package eventually answers, for a test, whether something comes to be true that
// the test itself does not bring about.
package eventually

import (
	"testing"
	"time"
)

// True waits for a minute at most. It turns a hang into a failure: nothing that is
// waited for should ever come near that.
func True(t testing.TB, what string, is func() bool) {
	t.Helper()
	Within(t, time.Minute, what, is)
}

// Within waits for so long at most.
func Within(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	pause := 100 * time.Microsecond
	for end := time.Now().Add(limit); !is(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}
