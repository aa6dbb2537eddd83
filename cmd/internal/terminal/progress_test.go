package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rankfs/cmd/internal/control"
)

// A clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const gib = 1 << 30

func TestBarFitsTheTerminal(t *testing.T) {
	begin := time.Unix(0, 0)
	m := &Meter{doing: "indexing", since: begin}
	half := control.Progress{Doing: "indexing", Bytes: 5 * gib, Total: 10 * gib}
	tests := []struct {
		name  string
		width int
		p     control.Progress
		after time.Duration
		want  string
	}{
		{"wide", 120, half, 10 * time.Second,
			"indexing  [####################....................]   50%  5.0 GiB of 10 GiB  512 MiB/s  10s left"},
		{"usual", 80, half, 10 * time.Second,
			"indexing  [##########...........]   50%  5.0 GiB of 10 GiB  512 MiB/s  10s left"},
		{"narrow", 60, half, 10 * time.Second,
			"indexing   50%  5.0 GiB of 10 GiB  512 MiB/s  10s left"},
		{"less", 50, half, 10 * time.Second,
			"indexing   50%  5.0 GiB of 10 GiB  512 MiB/s"},
		{"least", 20, half, 10 * time.Second, "indexing   50%"},
		{"none", 6, half, 10 * time.Second, "index"},
		{"zero", 0, half, 10 * time.Second, "i"},
		{"too early", 80, half, time.Second / 2,
			"indexing  [####################....................]   50%  5.0 GiB of 10 GiB"},
		{"start", 80, control.Progress{Doing: "indexing", Total: gib}, time.Minute,
			"indexing  [........................................]    0%  0 B of 1.0 GiB"},
		{"end", 80, control.Progress{Doing: "indexing", Bytes: gib, Total: gib}, time.Minute,
			"indexing  [###############################]  100%  1.0 GiB of 1.0 GiB  17 MiB/s"},
		{"beyond the end", 80, control.Progress{Doing: "indexing", Bytes: 2 * gib, Total: gib}, time.Minute,
			"indexing  [###############################]  100%  2.0 GiB of 1.0 GiB  34 MiB/s"},
		{"no total", 80, control.Progress{Doing: "indexing", Bytes: gib}, time.Minute,
			"indexing  1.0 GiB  17 MiB/s"},
		{"negative", 80, control.Progress{Doing: "indexing", Bytes: -5, Total: gib}, time.Minute,
			"indexing  [........................................]    0%  -5 B of 1.0 GiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := m.bar(test.p, begin.Add(test.after), test.width); got != test.want {
				t.Errorf("got\n%s, want\n%s", got, test.want)
			}
		})
	}
	for width := range 200 {
		if n := utf8.RuneCountInString(m.bar(half, begin.Add(time.Minute), width)); n > max(width-1, 1) {
			t.Errorf("%d columns in a terminal of %d", n, width)
		}
	}
}

func TestBarIsRedrawnTenTimesASecondAndRemoved(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(1000, 0)}
	m := &Meter{w: &out, now: c.now, width: func() int { return 80 }, what: "x"}
	for i := range 1000 { // one second in all
		m.Show(control.Progress{Doing: "indexing", Bytes: int64(i), Total: 1000})
		c.at = c.at.Add(time.Millisecond)
	}
	m.Done()
	if n := strings.Count(out.String(), "\r"); n != 10+1 {
		t.Errorf("drawn %d times", n-1)
	}
	if !strings.HasSuffix(out.String(), "\r\x1b[K") || strings.Contains(out.String(), "\n") {
		t.Errorf("left on the screen: %q", out.String())
	}
}

func TestNothingIsRemovedThatWasNotDrawn(t *testing.T) {
	var out bytes.Buffer
	m := &Meter{w: &out, now: new(clock).now, width: func() int { return 80 }}
	m.Done()
	if out.Len() != 0 {
		t.Errorf("wrote %q", out.String())
	}
}

func TestPlainLinesAreFew(t *testing.T) {
	tests := []struct {
		name  string
		total int64
		step  time.Duration // for each of 1000 bytes
		want  int
	}{
		{"instant", 1000, time.Microsecond, 0},
		{"ten seconds", 1000, 10 * time.Millisecond, 9},
		{"faster than lines", 1000, 2 * time.Millisecond, 1},
		{"slow", 1000, 200 * time.Millisecond, 19}, // at each tenth and 10 s after it
		{"no total", 0, 30 * time.Millisecond, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			c := &clock{time.Unix(1000, 0)}
			m := &Meter{w: &out, now: c.now, what: "x"}
			for i := range int64(1000) {
				m.Show(control.Progress{Doing: "indexing", Bytes: i, Total: test.total})
				c.at = c.at.Add(test.step)
			}
			m.Done()
			if n := strings.Count(out.String(), "\n"); n != test.want || strings.ContainsAny(out.String(), "\r\x1b") {
				t.Errorf("%d lines, want %d:\n%q", n, test.want, out.String())
			}
		})
	}
}

func TestEachStageHasItsOwnRate(t *testing.T) {
	var out bytes.Buffer
	c := &clock{time.Unix(1000, 0)}
	m := &Meter{w: &out, now: c.now, what: "x"}
	for _, doing := range []string{"indexing", "verifying"} {
		m.Show(control.Progress{Doing: doing, Total: 100})
		c.at = c.at.Add(10 * time.Second)
		m.Show(control.Progress{Doing: doing, Bytes: 50, Total: 100})
	}
	want := "indexing x:  50%, 50 B of 100 B, 5 B/s, 10s left\nverifying x:  50%, 50 B of 100 B, 5 B/s, 10s left\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
