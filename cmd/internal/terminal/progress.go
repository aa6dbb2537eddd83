package terminal

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

// A Meter shows how far a long operation has come: as one line that is drawn
// over and over on a terminal, and as a few plain lines elsewhere.
type Meter struct {
	w     io.Writer
	now   func() time.Time
	width func() int // of the terminal; nil if it is none
	what  string     // the dataset

	doing string
	since time.Time // when that began
	shown time.Time
	tenth int64 // that the last line was about
	drawn bool
}

// NewMeter is a meter of what is done to a dataset.
func NewMeter(w io.Writer, now func() time.Time, what string) *Meter {
	return &Meter{w: w, now: now, width: widthOf(w), what: what}
}

// widthOf returns a function that gives the width of w, or nil if w is not a
// terminal that can be drawn on.
func widthOf(w io.Writer) func() int {
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

// Show draws how far it has come, if it is time to.
func (m *Meter) Show(p control.Progress) {
	now := m.now()
	if p.Doing != m.doing {
		m.doing, m.since, m.tenth = p.Doing, now, 0
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
		fmt.Fprintf(m.w, "%s %s: %s\n", p.Doing, m.what, strings.Join(m.facts(p, now), ", "))
		m.shown, m.tenth = now, tenth
	}
}

// Done takes the bar away.
func (m *Meter) Done() {
	if m.drawn {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}

// bar fits as much into width columns as it can, the most telling first.
func (m *Meter) bar(p control.Progress, now time.Time, width int) string {
	width = max(width-1, 1) // a full last column makes some terminals wrap
	line := p.Doing
	const minBar, maxBar = 8, 40 // columns of the bar itself
	facts := m.facts(p, now)
	for len(facts) > 0 && utf8.RuneCountInString(line+"  "+strings.Join(facts, "  ")) > width {
		facts = facts[:len(facts)-1]
	}
	if len(facts) > 0 {
		room := width - utf8.RuneCountInString(line+"  "+strings.Join(facts, "  ")) - len("  []")
		if p.Total > 0 && room >= minBar {
			line += "  " + Gauge(p, min(room, maxBar))
		}
		line += "  " + strings.Join(facts, "  ")
	}
	if utf8.RuneCountInString(line) > width {
		line = string([]rune(line)[:width])
	}
	return line
}

// Gauge draws n columns, of which as many are full as is done.
func Gauge(p control.Progress, n int) string {
	full := int(fraction(p) * float64(n))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", n-full) + "]"
}

func fraction(p control.Progress) float64 {
	return max(0, min(1, float64(p.Bytes)/float64(p.Total)))
}

// facts are ordered by how telling they are, the most telling first. The rate is that of
// all of that: it is calm, and the time left follows from it.
func (m *Meter) facts(p control.Progress, now time.Time) []string {
	var facts []string
	if p.Total > 0 {
		facts = append(facts, fmt.Sprintf("%3d%%", int(fraction(p)*100)), Bytes(p.Bytes)+" of "+Bytes(p.Total))
	} else {
		facts = append(facts, Bytes(p.Bytes))
	}
	passed := now.Sub(m.since)
	if passed < lineGap || p.Bytes <= 0 {
		return facts // too early to tell
	}
	rate := float64(p.Bytes) / passed.Seconds()
	facts = append(facts, Bytes(int64(rate))+"/s")
	if left := p.Total - p.Bytes; left > 0 {
		facts = append(facts, Span(time.Duration(float64(left)/rate*float64(time.Second)))+" left")
	}
	return facts
}
