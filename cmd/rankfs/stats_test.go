package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"rankfs/cmd/internal/control"
)

// loads are what a daemon says, one after the other; then the command is
// stopped, or the daemon fails.
type loads struct {
	said []control.Load
	then func()
	fail error
}

func (l *loads) Load(context.Context, control.LoadRequest) (control.Load, error) {
	if len(l.said) == 0 {
		l.then()
		return control.Load{}, l.fail
	}
	one := l.said[0]
	l.said = l.said[1:]
	return one, nil
}

// second is what a daemon says that has gone on for so many seconds.
func second(n uint64, jobs ...control.Job) control.Load {
	return control.Load{
		Time: epoch.Add(time.Hour + time.Duration(n)*time.Second), Mount: "/mnt/rankfs", Since: epoch, Jobs: jobs,
		Flows:    control.Flows{Source: control.Flow{Bytes: int64(n) * 180 << 20, Busy: float64(n)}},
		Tiers:    []control.Tier{{Name: "ram", Budget: 64 << 30, Used: int64(n) << 30}, {Name: "nvme", Budget: 1 << 40, Used: 5 << 34}},
		Counters: control.Counters{CacheCounts: control.CacheCounts{Opens: 40 * n, OpensReady: 30 * n, Fills: 20 * n, FillBytes: n * 20 << 23, Restored: 5 * n, Evicted: 20 * n}},
	}
}

// A picture is a terminal of 80 by 24 as a person sees it, with the other
// screen that programs may draw on.
type picture struct {
	lines, main [24][]rune
	row, column int
	hidden      bool // cursor
	scrolled    bool
}

func (p *picture) write(text string) {
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexAny(rest, "HKJhl")
			p.control(rest[:end+1])
			text = rest[end+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		p.put(r)
	}
}

func (p *picture) put(r rune) {
	switch r {
	case '\r':
		p.column = 0
	case '\n':
		if p.row++; p.row == len(p.lines) {
			p.scrolled, p.row = true, p.row-1
		}
	default:
		line := p.lines[p.row]
		for len(line) <= p.column {
			line = append(line, ' ')
		}
		line[p.column] = r
		p.lines[p.row] = line
		p.column++
	}
}

func (p *picture) control(what string) {
	switch what {
	case "H":
		p.row, p.column = 0, 0
	case "K":
		p.lines[p.row] = p.lines[p.row][:min(p.column, len(p.lines[p.row]))]
	case "J":
		p.control("K")
		for row := p.row + 1; row < len(p.lines); row++ {
			p.lines[row] = nil
		}
	case "?1049h":
		p.main, p.lines = p.lines, [24][]rune{}
	case "?1049l":
		p.lines = p.main
	case "?25l", "?25h":
		p.hidden = what == "?25l"
	default:
		panic("control sequence " + what)
	}
}

func (p *picture) String() string {
	var b strings.Builder
	for _, line := range p.lines {
		fmt.Fprintln(&b, strings.TrimRight(string(line), " "))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// reading is one that reads.
func reading(name string, ranks int, stalled float64) control.Job {
	n := control.Account{OpenCounts: control.OpenCounts{Opens: 12000, Ready: 11400, Waited: 600, Bytes: 12000 << 23}, RankSeconds: 80, Stalled: 80 * stalled}
	n.Waits.Admission, n.Waits.Source = 70*stalled, 10*stalled
	return control.Job{ViewName: viewNamed(name), Now: control.Window{Seconds: 10, Ranks: ranks, Account: n}}
}

// The picture as a person has it, drawn over the one before; afterwards the
// terminal is as it was.
func TestStatsOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := openTerminal(t)
	ctx, stop := context.WithCancel(t.Context())
	many := []control.Job{reading("train", 8, 0.125), reading("imagenet-22k@ranks=16,order=full", 16, 0.0004)}
	for i := range 30 {
		many = append(many, reading(fmt.Sprint("job-", i), 1, 0))
	}
	d := &loads{said: []control.Load{second(1, many...), second(3, many[:2]...)}, then: stop, fail: context.Canceled}
	w := (&program{out: terminal}).watch(d, time.Millisecond)
	if w.screen == nil {
		t.Fatal("the terminal is taken for none")
	}
	fmt.Fprint(terminal, "what was there before\r\n")
	if err := w.follow(ctx); err != nil {
		t.Fatal(err)
	}
	text := readUntil(t, master, "\x1b[?25h\x1b[?1049l")
	frames := strings.SplitAfter(text, "\x1b[J")
	var p picture
	p.write(frames[0])
	lines := strings.Split(p.String(), "\n")
	if p.scrolled || !p.hidden || len(lines) != 25 || !strings.Contains(p.String(), "\nand 20 jobs\n") || !strings.HasPrefix(lines[23], "evicted") {
		t.Errorf("32 jobs do not fit:\n%s", p.String())
	}
	p.write(frames[1])
	const want = `rankfs on /mnt/rankfs, up 1h 00m; 13:00:03 UTC; last 10 s

JOB                   RANKS  BATCH/S    BYTES/S  READY  STALLED  WAITING FOR
train                     8    1,200  9.4 GiB/s  95.0%    12.5%  admission 10.9%
imagenet-..rder=full     16    1,200  9.4 GiB/s  95.0%    <0.1%

TIER     USED   BUDGET                          HITS
ram   3.0 GiB   64 GiB  [....................]  75.0% of the opens
nvme   80 GiB  1.0 TiB  [#...................]  20.0% of what memory had not

from     source 180 MiB/s, peers 0 B/s
filled   160 MiB/s, 0.0 batches/s ahead of a rank
evicted  20 batches/s; 60 since the mount
`
	if got := p.String(); got != want || p.scrolled {
		t.Errorf("the picture is\n%s\nwant\n%s", got, want)
	}
	p.write(frames[2])
	if got := p.String(); got != "what was there before\n" || p.hidden {
		t.Errorf("afterwards the terminal is\n%s", got)
	}
}

// readUntil reads what a terminal was sent, up to an end.
func readUntil(t *testing.T, master *os.File, end string) (text string) {
	t.Helper()
	for buf := make([]byte, 1<<16); !strings.HasSuffix(text, end); {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatalf("%q, then %v", text, err)
		}
		text += string(buf[:n])
	}
	return text
}

// A daemon that dies is an error, and the terminal as it was all the same.
func TestStatsOfADaemonThatDies(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := openTerminal(t)
	dead := errors.New("connection refused")
	w := (&program{out: terminal}).watch(&loads{said: []control.Load{second(1)}, then: func() {}, fail: dead}, time.Millisecond)
	if err := w.follow(t.Context()); !errors.Is(err, dead) {
		t.Errorf("got %v, want %v", err, dead)
	}
	readUntil(t, master, "\x1b[?25h\x1b[?1049l")
}

// Elsewhere there are lines to search, once for each interval.
func TestStatsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var out bytes.Buffer
		silent := control.Job{ViewName: viewNamed("silent"), Silent: 70}
		d := &loads{said: []control.Load{second(1, reading("train", 8, 0.125), silent), second(2)}, then: stop, fail: context.Canceled}
		begin := time.Now()
		if err := (&program{out: &out}).watch(d, time.Minute).follow(ctx); err != nil {
			t.Fatal(err)
		}
		const want = `13:00:01 train: 8 ranks, 1,200 batches/s, 9.4 GiB/s, 95.0% ready, 12.5% stalled (admission 10.9%, source 1.5%)
13:00:01 node: source -, peers -, filled -, - evictions/s; ram 1.0 GiB of 64 GiB, hits -; nvme 80 GiB of 1.0 TiB, hits -
13:00:02 node: source 180 MiB/s, peers 0 B/s, filled 160 MiB/s, 20 evictions/s; ram 2.0 GiB of 64 GiB, hits 75.0% of the opens; nvme 80 GiB of 1.0 TiB, hits 20.0% of what memory had not
`
		if got := out.String(); got != want || time.Since(begin) != 2*time.Minute {
			t.Errorf("after %v\n%s\nwant\n%s", time.Since(begin), got, want)
		}
	})
}

// However little room there is, the picture stays inside.
func TestFrameFits(t *testing.T) {
	jobs := []control.Job{reading(strings.Repeat("long", 40), 1<<20, 0.9999), reading("x", 1, 0)}
	jobs[0].Now.Opens, jobs[0].Now.Bytes = 1<<62, 1<<62
	for columns := 1; columns < 120; columns += 7 {
		for rows := 1; rows < 40; rows++ {
			lines := frame(second(5, jobs...), rates{}, columns, rows)
			if len(lines) > rows {
				t.Fatalf("%d lines in %d", len(lines), rows)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > columns {
					t.Fatalf("%d columns in %d: %q", n, columns, line)
				}
			}
		}
	}
}

// Of a cluster, it is told which node's jobs they are.
func TestFrameOfACluster(t *testing.T) {
	l := second(5)
	l.Host, l.Nodes = "node-with-a-long-name.example.com", 12
	const want = "node node-with..ample.com, one of 12: jobs of its own ranks"
	if got := frame(l, rates{}, 80, 24)[1]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var out strings.Builder
	writeLines(&out, l, rates{})
	if !strings.HasPrefix(out.String(), "13:00:05 node node-with-a-long-name.example.com: source ") {
		t.Errorf("in lines: %s", out.String())
	}
}

// Rates are of ten seconds, and never across a new start of the daemon.
func TestRates(t *testing.T) {
	var h history
	for n := range uint64(30) {
		l := second(n)
		if n >= 19 { // the source gives nothing any more
			l.Source.Bytes = 19 * 180 << 20
		}
		h = h.add(l)
	}
	if r := h.rates(); r.Source != 0 || r.Evictions != 20 || r.Seconds < 9 || r.Seconds > 11 || len(h) > 13 {
		t.Errorf("%+v of %d", r, len(h))
	}
	anew := second(31)
	anew.Since, anew.Counters = epoch.Add(time.Hour), control.Counters{}
	if h = h.add(anew); len(h) != 1 || h.rates() != (rates{}) {
		t.Errorf("after a new start: %+v of %d", h.rates(), len(h))
	}
}
