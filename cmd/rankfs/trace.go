package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
)

// TraceCommands are the commands below rankfs trace.
type traceCommands struct{ *program }

func (p *program) traceCommand() *cobra.Command {
	g := traceCommands{p}
	return p.group(&cobra.Command{
		Use:   "trace",
		Short: "Learn from what programs opened, so that the cache knows beforehand",
		Long: `A program that opens batches in an order of its own, as often as it likes, does
so again the next time. What this node's readers opened is in /.rankfs/trace
below the mount; what is learnt of that for a dataset tells the cache when each
batch will be opened again. A dataset can be larger than that on which it was
learnt. Each node has its own; it stays over restarts.`,
	}, g.learn(), g.list(), g.show(), g.forget())
}

func (p traceCommands) learn() *cobra.Command {
	var dataset, from string
	c := &cobra.Command{
		Use:   "learn NAME[@OPTIONS]",
		Short: "Keep for a dataset what was opened of a view",
		Long: `Keep for a dataset what the rank that opened most of a view has opened on this
node. It must have opened batches twice or more. Readers that follow no order are
then known by it: it does not matter if they depart from it.

  rankfs trace learn small --for train
  rankfs trace learn train --from trace.txt`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			r := control.LearnRequest{View: args[0], For: dataset}
			if from != "" {
				t, err := readTrace("from", from)
				if err != nil {
					return usage(c, err)
				}
				r.Text = t.Text(false)
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Trace, error) {
				t, err := d.LearnTrace(ctx, r)
				return t, about(err, args[0])
			}, func(w io.Writer, t control.Trace) {
				fmt.Fprintf(w, "%s: learnt of %s; %s\n", t.Dataset, terminal.Plural(t.Opens, "open"), again(t))
			})
		},
	}
	c.Flags().StringVar(&dataset, "for", "", "keep it for `DATASET`, if it is another than NAME")
	c.Flags().StringVar(&from, "from", "", "learn from `FILE`, with text as /.rankfs/trace has it")
	_ = c.RegisterFlagCompletionFunc("for", p.datasetNames)
	return c
}

// readTrace reads a file with a trace, which an option names.
func readTrace(option, path string) (t trace.Trace, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, failure.Unread(option, path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, trace.MaxText))
	if err != nil {
		return t, failure.Unread(option, path, err)
	}
	if t, err = trace.Parse(string(text)); err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// again says when steps were opened again.
func again(t control.Trace) string {
	opens := uint64(math.Round(t.Again * float64(t.Steps)))
	return fmt.Sprintf("a step came again after %s, mostly", terminal.Plural(opens, "open"))
}

func (p traceCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the datasets for which something was learnt",
		Args:  wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Traces, writeTraces)
		},
	}
}

func writeTraces(w io.Writer, all []control.Trace) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing was learnt; see: rankfs trace learn --help")
		return
	}
	t := terminal.NewTable("", "DATASET", " STEPS", " OPENS", " AGAIN AFTER", "LEARNT")
	for _, each := range all {
		t.Add(each.Dataset, terminal.Count(each.Steps), terminal.Count(each.Opens), fmt.Sprintf("%.2f", each.Again), each.Learnt.UTC().Format("2006-01-02 15:04 UTC"))
	}
	t.Write(w)
}

func (p traceCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show what was learnt for a dataset, as text for --from",
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).Trace, about), func(w io.Writer, t control.Trace) { fmt.Fprint(w, t.Text) })
		},
	}
}

func (p traceCommands) forget() *cobra.Command {
	return &cobra.Command{
		Use:               "rm NAME",
		Short:             "Forget what was learnt for a dataset",
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, func(d *control.Client, ctx context.Context) (struct{}, error) {
				return struct{}{}, about(d.ForgetTrace(ctx, args[0]), args[0])
			}, func(w io.Writer, _ struct{}) { fmt.Fprintf(w, "%s: what was learnt is forgotten\n", args[0]) })
		},
	}
}
