package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// A planning has the options of the plan command.
type planning struct {
	request     control.PlanRequest
	hostfile    string
	alpha, beta float64
	pareto      bool
}

func (p *program) planCommand() *cobra.Command {
	var a planning
	c := &cobra.Command{
		Use:   "plan NAME[@OPTIONS]",
		Short: "Show how local an epoch is, and settle which rank reads what",
		Long: `Show for one epoch how much the ranks on each node read, how much of that the
node itself holds, and what it would be if each rank had a fixed share.

Until a plan is settled, ranks are where they were opened last, and the others
in blocks on the nodes that are up, as mpirun places them. The first open of a
batch settles it; so does --settle.

  rankfs plan train@epoch=3,ranks=16
  rankfs plan train@ranks=16 --hostfile hosts --settle
  rankfs plan logs@batch=chunk --alpha 1 --beta 0.5 --pareto`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			a.request.View = args[0]
			f := c.Flags()
			if err := a.complete(f.Changed("alpha") || f.Changed("beta") || a.pareto); err != nil {
				return usage(c, err)
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Survey, error) {
				plan, err := d.Plan(ctx, a.request)
				return plan, aboutPlan(err, args[0])
			}, a.write)
		},
	}
	p.mountFlag(c)
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&a.hostfile, "hostfile", "", "the ranks are where `FILE` says: lines of HOST slots=N, or the host of each rank")
	f.BoolVar(&a.request.Settle, "settle", false, "settle the plan: from now on it is the same on all nodes")
	f.BoolVar(&a.request.Unsettle, "unsettle", false, "forget what was settled; no rank may be reading it")
	f.BoolVar(&a.request.Settle, "pin", false, "") // as the release before called them
	f.BoolVar(&a.request.Unsettle, "unpin", false, "")
	_, _ = f.MarkHidden("pin"), f.MarkHidden("unpin")
	f.Float64Var(&a.alpha, "alpha", 1, "solve DL-MPI's program: `WEIGHT` of the share of chunks that are local")
	f.Float64Var(&a.beta, "beta", 1, "and `WEIGHT` of the shortest time over the time that it takes")
	f.BoolVar(&a.pareto, "pareto", false, "and show all that there is to choose from")
	_ = c.MarkFlagFilename("hostfile")
	return c
}

// complete checks the options, and reads the hostfile.
func (a *planning) complete(weighed bool) (err error) {
	if a.request.Unsettle && (a.request.Settle || a.hostfile != "") {
		return meta.Worded(meta.ErrInvalid, "--unsettle goes with neither --settle nor --hostfile: unsettle first")
	}
	if weighed {
		w := new(control.Weights)
		var alpha, beta error
		w.Local, alpha = weight("alpha", a.alpha)
		w.Time, beta = weight("beta", a.beta)
		if err := firstOf(alpha, beta); err != nil {
			return err
		}
		a.request.Weights = w
	}
	if a.hostfile != "" {
		a.request.Seats, err = readHostfile(a.hostfile)
	}
	return err
}

// weight makes a whole number of a weight: only the relation of two matters.
func weight(name string, f float64) (uint32, error) {
	const maxWeight, unit = 4000, 1_000_000 // what 32 bits hold
	if !(f >= 0 && f <= maxWeight) {
		return 0, meta.Worded(meta.ErrInvalid, "%s %v is not a weight from 0 to %d", name, f, maxWeight)
	}
	return uint32(math.Round(f * unit)), nil
}

// aboutPlan adds the next step to an error about a plan.
func aboutPlan(err error, view string) error {
	switch {
	case errors.Is(err, meta.ErrExist):
		return failure.Hint(err, "when no rank reads it any more: rankfs plan %s --unsettle", view)
	case errors.Is(err, meta.ErrNotExist):
		return failure.Hint(err, "list the datasets with: rankfs dataset ls\nand the nodes where ranks can be with: rankfs node ls")
	}
	name, _, _ := meta.SplitView(view)
	return about(err, name)
}

func (a *planning) write(w io.Writer, p control.Survey) {
	terminal.Pairs(w, "",
		"view", p.Full,
		"plan", terminal.Wrap(a.state(p), 73, "       "),
		"steps", looked(p),
	)
	fmt.Fprintln(w)
	writeReads(w, p)
	fmt.Fprintln(w)
	if p.Located {
		writeDistances(w, p)
		fmt.Fprintln(w)
	}
	balance := fmt.Sprintf("the busiest rank reads %.2f times the mean", p.Plan.Balance)
	if p.State != control.PlanFixed {
		balance += fmt.Sprintf("; with fixed ranks %.2f", p.Strict.Balance)
	}
	terminal.Pairs(w, "", "balance", balance, "served", terminal.Wrap(served(p), 71, "         "), "local", terminal.Wrap(localWay(p), 71, "         "))
	if p.Program != nil {
		a.writeProgram(w, *p.Program)
	}
	warn(w, p.Warning)
}

// warn says why ranks may not be able to read a view.
func warn(w io.Writer, why string) {
	if why != "" {
		fmt.Fprintf(w, "\n%s\n", terminal.Wrap("warning: "+why, 79, ""))
	}
}

// writeDistances is a line for this plan, and one for fixed ranks where that
// would be another.
func writeDistances(w io.Writer, p control.Survey) {
	titles := []string{"HELD BY", " OWN HOST", " "}
	if p.Racks > 0 {
		titles = append(titles, " OWN RACK", " ")
	}
	t := terminal.NewTable("", append(titles, " OTHERS", " ")...)
	add := func(what string, b control.Bytes) {
		all := b.Local + b.Near + b.Remote
		cells := []string{what, terminal.Bytes(b.Local), terminal.Percent(ratio(b.Local, all))}
		if p.Racks > 0 {
			cells = append(cells, terminal.Bytes(b.Near), terminal.Percent(portion(b.Near, all)))
		}
		t.Add(append(cells, terminal.Bytes(b.Remote), terminal.Percent(portion(b.Remote, all)))...)
	}
	add("this plan", p.Plan.Bytes)
	if p.State != control.PlanFixed {
		add("assign=strict", p.Strict.Bytes)
	}
	t.Write(w)
}

// served says which nodes send what is not local.
func served(p control.Survey) string {
	if p.Serving == nil {
		return ""
	}
	return fmt.Sprintf("what is not local comes from %s; the busiest, %s, sends %s of it at least",
		terminal.Plural(p.Serving.Hosts, "host"), p.Serving.Busiest, terminal.Percent(p.Serving.Share))
}

// localWay says how local blocks of HDFS come.
func localWay(p control.Survey) string {
	if p.LocalBlocks == "" {
		return ""
	}
	return "blocks of this node: " + p.LocalBlocks
}

// writeReads is a line for each host. What cannot differ is left out.
func writeReads(w io.Writer, p control.Survey) {
	titles := []string{"HOST", " RANKS", " BYTES"}
	if p.Located {
		titles = append(titles, " LOCAL", " ", " NOT LOCAL")
	}
	if p.State != control.PlanFixed {
		titles = append(titles, " LOCAL IF FIXED")
	}
	t := terminal.NewTable("", titles...)
	for _, n := range p.Nodes {
		cells := []string{n.Host, terminal.Count(n.Ranks), terminal.Bytes(n.Bytes), terminal.Bytes(n.Local), terminal.Percent(ratio(n.Local, n.Bytes)), terminal.Bytes(n.Bytes - n.Local), terminal.Bytes(n.Strict)}
		if !p.Located {
			cells = cells[:3]
		}
		t.Add(cells[:len(titles)]...)
	}
	t.Write(w)
}

// state says in words how certain a plan is.
func (a *planning) state(p control.Survey) string {
	switch {
	case p.State == control.PlanFixed:
		return "nothing to choose: " + p.Reason
	case p.State == control.PlanSettled:
		return "settled " + date(*p.Settled)
	case p.Settled != nil:
		return "not this one: that of other hosts was settled " + date(*p.Settled)
	case a.hostfile != "":
		return "not settled; to have it so: --settle"
	}
	return "not settled: it is as if all ranks were opened now"
}

func looked(p control.Survey) string {
	if p.Looked == p.Steps {
		return terminal.Count(p.Steps)
	}
	return fmt.Sprintf("%s, of which %s at equal distances are counted here", terminal.Count(p.Steps), terminal.Count(p.Looked))
}

// portion is ratio for what is nothing of nothing.
func portion(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return ratio(a, b)
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

func (a *planning) writeProgram(w io.Writer, p control.Program) {
	fmt.Fprintf(w, "\n%s\n", terminal.Wrap(fmt.Sprintf("all %s at once, by DL-MPI's program, if ranks are equally fast and chunks equally large; "+
		"alpha %v, beta %v", terminal.Plural(p.Chunks, "chunk"), a.alpha, a.beta), 79, ""))
	say := func(q control.Point) string {
		return fmt.Sprintf("%s local (%s), no rank reads more than %s",
			terminal.Plural(q.Local, "chunk"), terminal.Percent(ratio(int64(q.Local), int64(p.Chunks))), terminal.Count(q.Most))
	}
	terminal.Pairs(w, "  ", "best", say(p.Best))
	if !a.pareto {
		return
	}
	fmt.Fprintf(w, "\nall that is worth choosing: more local takes longer\n")
	t := terminal.NewTable("  ", "", " MOST CHUNKS OF A RANK", " LOCAL CHUNKS", " SHARE")
	for _, q := range p.Curve {
		mark := ""
		if q == p.Best {
			mark = "*"
		}
		t.Add(mark, terminal.Count(q.Most), terminal.Count(q.Local), terminal.Percent(ratio(int64(q.Local), int64(p.Chunks))))
	}
	t.Write(w)
	if p.Points > len(p.Curve) {
		fmt.Fprintf(w, "  %s of %s are shown\n", terminal.Count(len(p.Curve)), terminal.Plural(p.Points, "point"))
	}
}

// datasetNames completes the name of a dataset.
func (p *program) datasetNames(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, how := complete(c, p, args, (*control.Client).Datasets, func(list []control.Dataset) (names []cobra.Completion) {
		for _, set := range list {
			names = append(names, cobra.CompletionWithDesc(set.Name, terminal.Plural(set.Records, "record")))
		}
		return names
	})
	return names, how | cobra.ShellCompDirectiveNoSpace // for @OPTIONS
}
