package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// QueueCommands are the commands below rankfs queue.
type queueCommands struct{ *program }

func (p *program) queueCommand() *cobra.Command {
	g := queueCommands{p}
	return p.group(&cobra.Command{
		Use:   "queue",
		Short: "See how far queues are, and begin them again",
		Long: `See how far queues are, and begin them again.

A queue hands out the batches of a view to the reader that asks next: reading a line of
rank-N/queue takes a batch, and says that the one before it is done.`,
	}, g.list(), g.show(), g.reset(), g.remove(), g.policy())
}

func (p queueCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the queues, the latest last",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Queues, p.writeAll)
		},
	}
}

func (p queueCommands) writeAll(w io.Writer, list []control.Queue) {
	if len(list) == 0 {
		fmt.Fprintf(w, "no queues; one begins when it is first read: %s\n", filepath.Join(p.asked.Mount, "datasets/NAME/rank-N/queue"))
		return
	}
	t := terminal.NewTable("", "QUEUE", " BATCHES", " DONE", " LEASED", " WAITING", " ASIDE", " READERS", "OPENED")
	for _, q := range list {
		t.Add(q.View, terminal.Count(q.Batches), terminal.Count(q.Done), terminal.Count(q.Leased), terminal.Count(q.Waiting), terminal.Count(q.SetAside), terminal.Count(q.Readers),
			q.Opened.UTC().Format("2006-01-02 15:04 UTC"))
	}
	t.Write(w)
	for _, q := range list {
		if q.SetAside > 0 {
			fmt.Fprintf(w, "\n%s of %s: set aside, since readers gave them back again and again\n  see: rankfs queue show %[2]s\n",
				batches(q.SetAside), q.View)
		}
	}
}

func (p queueCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME[@OPTIONS]",
		Short: "Show the readers of a queue, and the batches that none could finish",
		Long: `Show how far a queue is, what the readers on each host do, which batches have
been with a reader for longest, and which were given back.

A batch that four readers gave back, by closing the queue or by dying, without
any of them finishing it, is set aside: no reader is given it any more, so that the
others get to the end. There their last read fails once, with EOWNERDEAD.`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).Queue, aboutQueue), func(w io.Writer, q control.QueueDetail) { writeQueue(w, q, p.now()) })
		},
	}
}

func (p queueCommands) reset() *cobra.Command {
	r := control.ResetRequest{}
	c := &cobra.Command{
		Use:   "reset NAME[@OPTIONS]",
		Short: "Begin a queue again, or what was set aside of it",
		Long: `Begin a queue again: all its batches are handed out once more, those that are
done as well.

With --aside, only those that were set aside are handed out again, when what
was wrong with their readers is put right; what is done stays done.`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Queue, error) {
				q, err := d.ResetQueue(ctx, r)
				return q, aboutQueue(err, r.Name)
			}, func(w io.Writer, q control.Queue) { writeReset(w, q, r.SetAside) })
		},
	}
	c.Flags().BoolVar(&r.SetAside, "aside", false, "hand out again what was set aside, and nothing else")
	return c
}

func (p queueCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Forget a queue that is not to be worked off",
		Long: `Forget a queue, and which of its batches are done. What readers have of it counts no
more. A queue that is read again begins anew.`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			drop := func(d *control.Client, ctx context.Context, name string) error {
				return aboutQueue(d.DropQueue(ctx, name), name)
			}
			return removed(c, p, args[0], drop, func(w io.Writer) {
				fmt.Fprintf(w, "the queue of %s is forgotten; one that is read again begins anew\n", args[0])
			})
		},
	}
}

func (p queueCommands) policy() *cobra.Command {
	return &cobra.Command{
		Use:   "policy [NAME]",
		Short: "Show or change the policy of queues",
		Long: `Show or change the policy by which the queues of this cluster that begin from
now on hand out batches. A queue that has begun keeps its own; see: rankfs queue show

  flow         a division of what is left among the nodes, so that all end at
               once with as much read locally as can be, made anew as the
               readers' speeds show; a reader that would only be late waits
  probability  drawn at random, what its other holders will come to last with
               the highest probability (Algorithm 1 of DL-MPI); no reader waits

With either a reader gets a batch that its host has, as long as there is one.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return wants("NAME")(c, args)
		},
		ValidArgs: []string{"flow", "probability"},
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Policy, error) {
				return d.QueuePolicy(ctx, control.PolicyRequest{Name: strings.Join(args, "")})
			}, writePolicy)
		},
	}
}

func writeReset(w io.Writer, q control.Queue, aside bool) {
	if aside {
		fmt.Fprintf(w, "%s: what was set aside is handed out again; %s now\n"+
			"readers that were at the end have to open the queue again\n", q.View, isWaiting(q.Waiting))
		return
	}
	fmt.Fprintf(w, "%s: begun again; %s now\n", q.View, isWaiting(q.Waiting))
	if q.Readers > 0 {
		fmt.Fprintln(w, "what readers hold counts no more; the next read of each says so, with ESTALE")
	}
}

func isWaiting(n uint64) string {
	if n == 1 {
		return "1 batch is waiting"
	}
	return batches(n) + " are waiting"
}

// aboutQueue adds the next step to an error about a queue.
func aboutQueue(err error, _ string) error {
	switch {
	case errors.Is(err, meta.ErrNotExist):
		return failure.Hint(err, "list the queues with: rankfs queue ls")
	case errors.Is(err, meta.ErrBusy):
		return failure.Hint(err, "try again in a while")
	}
	return err
}

// Bounds of long lists in text; --json has more.
const (
	maxLeases = 8
	maxAside  = 20
)

func writeQueue(w io.Writer, q control.QueueDetail, now time.Time) {
	again := ""
	if q.Resets > 0 {
		again = "; begun again " + terminal.Plural(q.Resets, "time")
	}
	view := q.Full
	if view == q.View {
		view = ""
	}
	terminal.Pairs(w, "",
		"queue", q.View,
		"view", view,
		"batches", fmt.Sprintf("%s: %s done, %s leased, %s waiting, %s set aside",
			terminal.Count(q.Batches), terminal.Count(q.Done), terminal.Count(q.Leased), terminal.Count(q.Waiting), terminal.Count(q.SetAside)),
		"policy", q.Policy,
		"opened", date(q.Opened)+" by "+userName(q.UID)+again,
	)
	if len(q.Nodes) > 0 {
		fmt.Fprintln(w)
		writeQueueNodes(w, q.Nodes)
	}
	if len(q.Leases) > 0 {
		fmt.Fprintln(w, "\nleased, the longest first")
		writeLeases(w, q.Leases, now)
	}
	if len(q.AsideBatches) > 0 {
		fmt.Fprintln(w, "\nset aside: no reader is given these any more")
		writeGiven(w, q.AsideBatches, int(q.SetAside))
		fmt.Fprintf(w, "\nwhen readers can do them: rankfs queue reset %s --aside\n", q.View)
	}
	if len(q.Tried) > 0 {
		fmt.Fprintln(w, "\ngiven back, and not done yet")
		writeGiven(w, q.Tried, len(q.Tried))
	}
}

func writeQueueNodes(w io.Writer, nodes []control.QueueNode) {
	t := terminal.NewTable("", "HOST", " READERS", " LEASED", " READ", " SECONDS EACH")
	for _, n := range nodes {
		each := "-"
		if n.Read > 0 {
			each = fmt.Sprintf("%.2f", n.Seconds/float64(n.Read))
		}
		t.Add(n.Host, terminal.Count(n.Readers), terminal.Count(n.Leased), terminal.Count(n.Read), each)
	}
	t.Write(w)
}

func writeLeases(w io.Writer, leases []control.Lease, now time.Time) {
	t := terminal.NewTable("  ", "BATCH", " RANK", "HOST", " FOR")
	for _, l := range leases[:min(len(leases), maxLeases)] {
		t.Add(l.Batch, terminal.Count(l.Rank), l.Host, terminal.Span(max(0, now.Sub(l.Since))))
	}
	t.Write(w)
	writeMore(w, len(leases)-maxLeases)
}

// reasons are the words for why a batch came back.
var reasons = map[string]string{
	"closed":  "reader ended or closed the queue",
	"down":    "node was seen down",
	"removed": "node was removed",
}

// writeGiven is a line for each batch, with the last reader that gave it back.
func writeGiven(w io.Writer, list []control.AsideBatch, of int) {
	t := terminal.NewTable("  ", "BATCH", " TIMES", "LAST", " RANK", "HOST", "WHY")
	for _, b := range list[:min(len(list), maxAside)] {
		if len(b.By) > 0 {
			last := b.By[len(b.By)-1]
			t.Add(b.Batch, terminal.Count(len(b.By)), date(last.At), terminal.Count(last.Rank), last.Host, reasons[last.Cause])
		}
	}
	t.Write(w)
	writeMore(w, of-maxAside)
}

func writeMore(w io.Writer, n int) {
	if n > 0 {
		fmt.Fprintf(w, "  and %s more; see: rankfs queue show --json\n", terminal.Count(n))
	}
}

// names completes the name of a queue.
func (p queueCommands) names(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(c, p, args, (*control.Client).Queues, func(list []control.Queue) (names []cobra.Completion) {
		for _, q := range list {
			names = append(names, cobra.CompletionWithDesc(q.View, fmt.Sprintf("%s of %s done", terminal.Count(q.Done), batches(q.Batches))))
		}
		return names
	})
}
