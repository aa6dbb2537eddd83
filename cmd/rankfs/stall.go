package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

func (p *program) stallCommand() *cobra.Command {
	var ranks bool
	c := &cobra.Command{
		Use:   "stall NAME[@OPTIONS] | JOB/STAGE",
		Short: "Show how much of the ranks' time is waiting, and what for",
		Long: `Show for the jobs on this node that read a dataset, or one view of it in any
epoch, what share of the ranks' time was waiting for opens, what was waited
for, and what would remove that. Each node of a cluster tells of its own ranks.

A rank's time goes from its first open to its last, without gaps of more than a
minute. What would remove the waits is an estimate from what was measured.

Of a stage of the shuffle pool, JOB/STAGE, show which readers wait on this node for
a part, and for which maps.

  rankfs stall train
  rankfs stall train@ranks=16 --ranks`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			d, err := p.daemon()
			if err != nil {
				return err
			}
			if strings.Contains(args[0], "/") {
				return answer(c, p, named(args[0], (*control.Client).PoolStage, aboutShuffle),
					func(w io.Writer, g control.PoolStageDetail) { writePartStall(w, g, p.now()) })
			}
			l, err := d.Load(c.Context(), control.LoadRequest{Name: args[0], Ranks: ranks})
			if err != nil {
				return about(err, args[0])
			}
			return p.print(stalls(l), func(w io.Writer) { writeStalls(w, l, args[0]) })
		},
	}
	p.mountFlag(c)
	c.Flags().BoolVar(&ranks, "ranks", false, "show each rank's part")
	return c
}

// An advised job is a job with what would remove its waits.
type advised struct {
	control.Job
	Share  float64 `json:"stall"` // of the ranks' time that was waiting
	Wanted float64 `json:"wanted_bytes_per_second"`
	Advice string  `json:"advice"`
}

// stalls are the jobs of a load, for JSON.
func stalls(l control.Load) []advised {
	all := []advised{}
	for _, j := range l.Jobs {
		n := needOf(l, j)
		all = append(all, advised{j, n.share, n.wanted, advise(l, j)})
	}
	return all
}

func writeStalls(w io.Writer, l control.Load, name string) {
	if len(l.Jobs) == 0 {
		where := "on this node"
		if node := oneOf(l); node != "" {
			where = "on " + node + " nodes,"
		}
		fmt.Fprintf(w, "no rank %s has opened a batch of %s since the mount\n", where, name)
		return
	}
	for i, j := range l.Jobs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		writeStall(w, l, j)
	}
}

func writeStall(w io.Writer, l control.Load, j control.Job) {
	a := j.Total
	terminal.Pairs(w, "",
		"job", j.View,
		"ranks", ranksOf(j),
		"node", nodeOf(l),
		"opened", fmt.Sprintf("%s batches, %s: %s ready, %s waited, %s",
			terminal.Count(a.Opens), terminal.Bytes(a.Bytes), terminal.Count(a.Ready), terminal.Count(a.Waited), terminal.Plural(a.Errors, "error"))+interrupted(a),
		"stalled", fmt.Sprintf("%s of the ranks' time (%s of %s)%s", part(a.Share()), brief(a.Stalled), brief(a.RankSeconds), lately(j)),
		"waits", waitsOf(j),
	)
	fmt.Fprintln(w)
	if a.Waits.Sum() > 0 {
		writeCauses(w, a)
		fmt.Fprintln(w)
	}
	if len(j.Ranks) > 0 {
		writeRanks(w, j.Ranks)
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "what would remove it, as an estimate:\n  %s\n", terminal.Wrap(advise(l, j), 78, "  "))
	warn(w, j.Warning)
}

func interrupted(a control.Account) string {
	if a.Interrupted == 0 {
		return ""
	}
	return fmt.Sprintf(", %s interrupted", terminal.Count(a.Interrupted))
}

func ranksOf(j control.Job) string {
	text := fmt.Sprintf("%s here", terminal.Count(j.Here))
	if j.Facts != nil {
		text += fmt.Sprintf(" of %s", terminal.Count(j.Facts.Ranks))
	}
	if j.Waiting > 0 {
		text += fmt.Sprintf("; %s waiting now", terminal.Plural(j.Waiting, "open"))
	}
	return text
}

// nodeOf names the node of these ranks, if there are several nodes.
func nodeOf(l control.Load) string {
	if l.Nodes < 2 {
		return ""
	}
	return oneOf(l) + ": each tells of its own ranks"
}

// oneOf names the node that tells, if there are several.
func oneOf(l control.Load) string {
	if l.Nodes < 2 {
		return ""
	}
	return fmt.Sprintf("%s, one of %s", middle(l.Host), terminal.Count(l.Nodes))
}

// middle shortens a name that would push everything else off the screen.
func middle(name string) string {
	const maxRunes = 20
	if utf8.RuneCountInString(name) <= maxRunes {
		return name
	}
	runes := []rune(name)
	return string(runes[:maxRunes/2-1]) + ".." + string(runes[len(runes)-maxRunes/2+1:])
}

// lately describes the last minute, or says that no rank reads now. It is empty for a
// job whose opens were all in that minute.
func lately(j control.Job) string {
	if j.Minute.Ranks == 0 {
		return "; none reads now"
	}
	if j.Minute.Opens == j.Total.Opens {
		return ""
	}
	return fmt.Sprintf("; %s in the last %s", part(j.Minute.Share()), brief(j.Minute.Seconds))
}

func waitsOf(j control.Job) string {
	if j.Total.Waited == 0 {
		return ""
	}
	return fmt.Sprintf("half of them at most %s, all but one in a hundred at most %s", brief(j.Typical), brief(j.Longest))
}

// writeCauses divides the stalled share among its causes. Opens of one rank
// that waited at once stalled it once, so they bear their part of that.
func writeCauses(w io.Writer, a control.Account) {
	t := terminal.NewTable("", "WAITED FOR", " TIME", " SHARE", "WHICH IS")
	add := func(c cause) {
		if c.seconds > 0 {
			t.Add(c.name, brief(c.seconds), part(c.seconds/a.Waits.Sum()*a.Share()), c.words)
		}
	}
	for _, c := range ranked(a.Waits) {
		add(c)
		if c.name == "admission" {
			add(cause{"  worker", "all were busy or waited, or there was no file", a.Waits.Admission - a.MemoryWait})
			add(cause{"  memory", "ranks had all of it", a.MemoryWait})
		}
		if c.name == "source" {
			add(cause{"  by file", "blocks of this host, by their files", a.HDFSWaits.Files})
			add(cause{"  local TCP", "blocks of this host, over TCP", a.HDFSWaits.LocalTCP})
			add(cause{"  remote", "blocks of other hosts", a.HDFSWaits.Remote})
		}
	}
	t.Write(w)
}

func writeRanks(w io.Writer, ranks []control.Rank) {
	t := terminal.NewTable("", " RANK", " BATCHES", " READY", " TIME", " STALLED", " SHARE", "MOSTLY FOR")
	for _, r := range ranks {
		mostly := ""
		if worst := ranked(r.Waits)[0]; worst.seconds > 0 {
			mostly = worst.name
		}
		t.Add(terminal.Count(r.Rank), terminal.Count(r.Opens), terminal.Percent(of(r.Ready, r.Opens)), brief(r.RankSeconds), brief(r.Stalled), part(r.Share()), mostly)
	}
	t.Write(w)
}

// of is a part of opens; all of none.
func of(part, all uint64) float64 { return ratio(int64(part), int64(all)) }

// brief writes seconds in two or three digits.
func brief(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d == 0:
		return "0 s"
	case d < 999500*time.Nanosecond:
		return fmt.Sprintf("%.0f us", seconds*1e6)
	case d < 9950*time.Microsecond:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1f s", seconds)
	default:
		return terminal.Span(d)
	}
}
