package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
)

// How often progress is shown.
const (
	redraw   = 100 * time.Millisecond // of a bar
	lineGap  = time.Second            // least time between two lines
	lineLate = 10 * time.Second       // a line at least so often, while anything comes
)

// A meter shows how far a long operation has come: as one line that is drawn
// over and over on a terminal, and as a few plain lines elsewhere.
type meter struct {
	w     io.Writer
	now   func() time.Time
	width func() int // of the terminal; nil if it is none
	what  string     // the dataset

	stage string
	since time.Time // when the stage began
	shown time.Time
	tenth int64 // that the last line was about
	drawn bool
}

func (p *program) meter(what string) *meter {
	return &meter{w: p.err, now: p.now, width: terminal(p.err), what: what}
}

// terminal returns a function that gives the width of w, or nil if w is not a
// terminal that can be drawn on.
func terminal(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	columns := func() int {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return -1
		}
		if size.Col == 0 {
			return 80 // a terminal that does not know
		}
		return int(size.Col)
	}
	if columns() < 0 {
		return nil
	}
	return columns
}

func (m *meter) show(p control.Progress) {
	now := m.now()
	if p.Stage != m.stage {
		m.stage, m.since, m.tenth = p.Stage, now, 0
		m.shown = time.Time{}
		if m.width == nil {
			m.shown = now // what takes no time needs no line
		}
	}
	if m.width != nil {
		if now.Sub(m.shown) >= redraw {
			fmt.Fprintf(m.w, "\r%s\x1b[K", m.bar(p, now, m.width()))
			m.shown, m.drawn = now, true
		}
		return
	}
	tenth := int64(0)
	if p.Total > 0 {
		tenth = int64(float64(p.Bytes) / float64(p.Total) * 10)
	}
	gap := now.Sub(m.shown)
	if tenth > m.tenth && gap >= lineGap || gap >= lineLate {
		fmt.Fprintf(m.w, "%s %s: %s\n", p.Stage, m.what, strings.Join(m.facts(p, now), ", "))
		m.shown, m.tenth = now, tenth
	}
}

// done takes the bar away.
func (m *meter) done() {
	if m.drawn {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}

// bar fits as much into width columns as it can, the most telling first.
func (m *meter) bar(p control.Progress, now time.Time, width int) string {
	width = max(width-1, 1) // a full last column makes some terminals wrap
	line := p.Stage
	const least, most = 8, 40 // columns of the bar itself
	facts := m.facts(p, now)
	for len(facts) > 0 && columns(line+"  "+strings.Join(facts, "  ")) > width {
		facts = facts[:len(facts)-1]
	}
	if len(facts) > 0 {
		room := width - columns(line+"  "+strings.Join(facts, "  ")) - len("  []")
		if p.Total > 0 && room >= least {
			line += "  " + gauge(p, min(room, most))
		}
		line += "  " + strings.Join(facts, "  ")
	}
	if columns(line) > width {
		line = string([]rune(line)[:width])
	}
	return line
}

func columns(s string) int { return utf8.RuneCountInString(s) }

func gauge(p control.Progress, n int) string {
	full := int(fraction(p) * float64(n))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", n-full) + "]"
}

func fraction(p control.Progress) float64 {
	return max(0, min(1, float64(p.Bytes)/float64(p.Total)))
}

// facts are what there is to say, the most telling first. The rate is that of
// the whole stage: it is calm, and the time left follows from it.
func (m *meter) facts(p control.Progress, now time.Time) []string {
	var facts []string
	if p.Total > 0 {
		facts = append(facts, fmt.Sprintf("%3d%%", int(fraction(p)*100)), size(p.Bytes)+" of "+size(p.Total))
	} else {
		facts = append(facts, size(p.Bytes))
	}
	passed := now.Sub(m.since)
	if passed < lineGap || p.Bytes <= 0 {
		return facts // too early to tell
	}
	rate := float64(p.Bytes) / passed.Seconds()
	facts = append(facts, size(int64(rate))+"/s")
	if left := p.Total - p.Bytes; left > 0 {
		facts = append(facts, span(time.Duration(float64(left)/rate*float64(time.Second)))+" left")
	}
	return facts
}
