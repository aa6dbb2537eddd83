package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

// frame is the picture of one moment, in lines that fit.
func frame(l control.Load, r rates, columns, rows int) []string {
	tail := tailLines(l, r)
	lines := headLines(l)
	room := max(1, rows-len(lines)-len(tail)-1)
	lines = append(lines, jobLines(l.Jobs, columns, room)...)
	lines = append(append(lines, ""), tail...)
	if len(lines) > rows {
		lines = lines[:max(rows, 1)]
	}
	for i, line := range lines {
		lines[i] = cut(line, columns)
	}
	return lines
}

// headLines say what the picture is of.
func headLines(l control.Load) []string {
	lines := []string{fmt.Sprintf("rankfs on %s, up %s; %s; last 10 s",
		l.Mount, terminal.Span(l.Time.Sub(l.Since)), l.Time.UTC().Format(time.TimeOnly+" UTC"))}
	if node := oneOf(l); node != "" {
		lines = append(lines, "node "+node+": jobs of its own ranks")
	}
	return append(lines, "")
}

// jobLines is the table of jobs, in at most room lines.
func jobLines(jobs []control.Job, columns, room int) []string {
	if len(jobs) == 0 {
		return []string{"no rank has opened a batch since the mount"}
	}
	t := terminal.NewTable("", "JOB", " RANKS", " BATCH/S", " BYTES/S", " READY", " STALLED", "WAITING FOR")
	causes := 1 // what 80 columns have room for
	if columns >= 110 {
		causes = 3
	}
	for _, j := range jobs {
		t.Add(jobCells(j, causes)...)
	}
	var b bytes.Buffer
	t.Write(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:max(room-1, 1)], fmt.Sprintf("and %s", terminal.Plural(left, "job")))
	}
	return lines
}

func jobCells(j control.Job, causes int) []string {
	n := j.Now
	if n.Ranks == 0 && j.Waiting == 0 {
		return []string{middle(j.View), "0", "-", "-", "-", "-", "silent for " + terminal.Span(time.Duration(j.Silent)*time.Second)}
	}
	return []string{
		middle(j.View), terminal.Count(n.Ranks), number(perSecond(n, float64(n.Opens))), speed(perSecond(n, float64(n.Bytes))),
		readyShare(n), part(n.Share()), worst(n, causes),
	}
}

func perSecond(n control.Window, amount float64) float64 {
	if n.Seconds <= 0 {
		return 0
	}
	return amount / n.Seconds
}

// readyShare is the share of opens that did not wait, of those that ended; nothing if none did.
func readyShare(n control.Window) string {
	if n.Opens == 0 {
		return "-"
	}
	return terminal.Percent(of(n.Ready, n.Opens))
}

// worst are the worst causes, each with its part of the ranks' time.
func worst(n control.Window, most int) string {
	var all []string
	for _, c := range ranked(n.Waits)[:most] {
		if share := c.seconds / n.Waits.Sum() * n.Share(); share >= 0.001 {
			all = append(all, c.name+" "+terminal.Percent(share))
		}
	}
	return strings.Join(all, ", ")
}

// number writes a rate of things in three digits.
func number(n float64) string {
	if n < 9.95 {
		return fmt.Sprintf("%.1f", n)
	}
	return terminal.Count(int64(math.Round(n)))
}

// tailLines are the lines of the tiers, and of what comes from where.
func tailLines(l control.Load, r rates) []string {
	var b bytes.Buffer
	t := terminal.NewTable("", "TIER", " USED", " BUDGET", "", "HITS")
	for _, tier := range l.Tiers {
		used := control.Progress{Bytes: tier.Used, Total: max(tier.Budget, 1)}
		t.Add(tier.Name, terminal.Bytes(tier.Used), terminal.Bytes(tier.Budget), terminal.Gauge(used, 20), hits(tier.Name, r))
	}
	t.Write(&b)
	fmt.Fprintln(&b)
	terminal.Pairs(&b, "",
		"pool", poolNow(l.Pool),
		"from", fmt.Sprintf("source %s, peers %s", rate(r, r.Source), rate(r, r.Peers)),
		"hdfs", ways(l, r),
		"filled", fmt.Sprintf("%s, %s batches/s ahead of a rank", rate(r, r.Filled), things(r, r.Ahead)),
		"evicted", fmt.Sprintf("%s batches/s; %s since the mount", things(r, r.Evictions), terminal.Count(l.Counters.Evicted)),
	)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// poolNow says how full the shuffle pool is; nothing if there is none, or no job.
func poolNow(p *control.Pool) string {
	if p == nil || p.Jobs == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s, %s", terminal.Bytes(p.Used), terminal.Bytes(p.Budget), terminal.Plural(p.Jobs, "job"))
	if p.Waiting > 0 {
		text += fmt.Sprintf(", %s waiting", terminal.Plural(p.Waiting, "open"))
	}
	if p.Missing > 0 {
		text += fmt.Sprintf(", %s copies missing", terminal.Count(p.Missing))
	}
	return text
}

// ways says how blocks of HDFS come; nothing if none ever did.
func ways(l control.Load, r rates) string {
	if h := l.HDFS; h.Files.Bytes+h.LocalTCP.Bytes+h.Remote.Bytes == 0 {
		return ""
	}
	return fmt.Sprintf("by file %s, local over TCP %s, remote %s", rate(r, r.Files), rate(r, r.LocalTCP), rate(r, r.Remote))
}

func hits(tier string, r rates) string {
	switch {
	case tier == "ram" && r.Opened:
		return terminal.Percent(r.RAMHits) + " of the opens"
	case tier == "nvme" && r.NeededDisk:
		return terminal.Percent(r.DiskHits) + " of what memory had not"
	}
	return "-"
}

func rate(r rates, bytes float64) string {
	if r.Seconds == 0 {
		return "-"
	}
	return speed(bytes)
}

func things(r rates, n float64) string {
	if r.Seconds == 0 {
		return "-"
	}
	return number(n)
}

func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns])
}

// writeLines is one look where nothing can be drawn: a line for each job that is not
// silent, and one for the node.
func writeLines(w io.Writer, l control.Load, r rates) {
	at := l.Time.UTC().Format(time.TimeOnly)
	for _, j := range l.Jobs {
		if n := j.Now; n.Ranks > 0 || j.Waiting > 0 {
			line := fmt.Sprintf("%s %s: %s, %s batches/s, %s, %s ready, %s stalled", at, j.View, terminal.Plural(n.Ranks, "rank"),
				number(perSecond(n, float64(n.Opens))), speed(perSecond(n, float64(n.Bytes))), readyShare(n), part(n.Share()))
			if why := worst(n, 6); why != "" {
				line += " (" + why + ")"
			}
			fmt.Fprintln(w, line)
		}
	}
	name := "node"
	if l.Nodes > 1 {
		name += " " + l.Host
	}
	source := rate(r, r.Source)
	if how := ways(l, r); how != "" {
		source += " (" + how + ")"
	}
	line := fmt.Sprintf("%s %s: source %s, peers %s, filled %s, %s evictions/s", at, name,
		source, rate(r, r.Peers), rate(r, r.Filled), things(r, r.Evictions))
	for _, t := range l.Tiers {
		line += fmt.Sprintf("; %s %s of %s, hits %s", t.Name, terminal.Bytes(t.Used), terminal.Bytes(t.Budget), hits(t.Name, r))
	}
	if pool := poolNow(l.Pool); pool != "" {
		line += "; pool " + pool
	}
	fmt.Fprintln(w, line)
}
