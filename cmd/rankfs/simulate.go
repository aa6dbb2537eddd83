package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// A forecasting is what a person asks about epochs to come.
type forecasting struct {
	ram, nvme, bytes      string // sizes
	bandwidth, link, disk string // rates
	nodes                 int
	ranks                 uint64
	step                  time.Duration
	epochs                int
	packed                float64
	policy                string
	trace                 string
}

func (p *program) simulateCommand() *cobra.Command {
	var a forecasting
	c := &cobra.Command{
		Use:   "simulate NAME[@OPTIONS]",
		Short: "Predict epochs: what they take, and what ranks wait for",
		Long: `Predict how long epochs of a view take with other budgets, rates, nodes or
policies: on a virtual clock, with the planners of the cache itself. No data is
read, and nothing changes.

What is not given is as mounted, as measured since the mount, --step of ranks
that read the dataset now, or assumed; the answer says which. A SIZE is of each
node, a RATE a size for each second. With --bytes nothing need be mounted.

  rankfs simulate train --step 120ms
  rankfs simulate train --step 120ms --ram 64GiB --bandwidth 400MiB --policy all
  rankfs simulate train@order=full --step 120ms --nodes 4 --ranks 16
  rankfs simulate train --step 120ms --trace small
  rankfs simulate new@ranks=8,batch=64MiB --bytes 2TiB --ram 256GiB`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			return p.simulate(c, args[0], a)
		},
	}
	p.mountFlag(c)
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&a.ram, "ram", "", "memory of a node for batches, `SIZE` as 16GiB")
	f.StringVar(&a.nvme, "nvme", "", "disk of a node for batches, `SIZE`; 0B is none")
	f.IntVar(&a.nodes, "nodes", 0, "`N` nodes, each with its share of the ranks")
	f.Uint64Var(&a.ranks, "ranks", 0, "`N` ranks, all nodes together")
	f.StringVar(&a.bandwidth, "bandwidth", "", "`RATE` of the source, all nodes together, as 500MiB")
	f.StringVar(&a.link, "link", "", "`RATE` of a node's link to the others")
	f.StringVar(&a.disk, "disk", "", "`RATE` at which a node's disk is read")
	f.Float64Var(&a.packed, "packed", 0, "`SHARE` of its bytes that a batch has when it is packed, as 0.4")
	f.DurationVar(&a.step, "step", 0, "`TIME` that a rank works on a batch, as 120ms")
	f.StringVar(&a.bytes, "bytes", "", "`SIZE` of a dataset that there is not yet")
	f.IntVar(&a.epochs, "epochs", 3, "`N` epochs; the last one is shown; of a trace, all")
	f.StringVar(&a.trace, "trace", "", "ranks read as a trace says: of a `FILE`, or learnt for a dataset of that name")
	f.StringVar(&a.policy, "policy", policy.Names()[0], "`NAME` of the policy, or all")
	_ = c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(append(policy.Names(), "all"), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *program) simulate(c *cobra.Command, view string, a forecasting) error {
	names, err := a.policies()
	if err != nil {
		return usage(c, err)
	}
	j, err := a.read()
	if err != nil {
		return usage(c, err)
	}
	if a.trace != "" {
		if j.trace, err = p.traced(c, a.trace); err != nil {
			return err
		}
		if !c.Flags().Changed("epochs") {
			j.epochs = 0
		}
	}
	set, options, s, err := p.known(c, view, j)
	if err != nil {
		return err
	}
	if err := j.complete(set, options, s, p.cores); err != nil {
		return aboutJob(c, err)
	}
	o, err := j.predict(c.Context(), names)
	switch {
	case errors.Is(err, context.Canceled):
		return failf(context.Canceled, "simulate %s: stopped", view)
	case err != nil:
		return aboutJob(c, err)
	}
	return p.print(o, func(w io.Writer) { o.write(w) })
}

// known asks the daemon for what it knows of the dataset and of its node, unless
// there need be none.
func (p *program) known(c *cobra.Command, view string, j *job) (set control.Dataset, options string, s control.Status, err error) {
	name, options, _ := meta.SplitView(view)
	if j.bytes > 0 {
		set, err := j.imagined(name)
		return set, options, s, aboutJob(c, err)
	}
	d, err := p.daemon()
	if err != nil {
		return set, options, s, err
	}
	if set, err = d.Dataset(c.Context(), name); err != nil {
		return set, options, s, about(err, name)
	}
	if s, err = d.Status(c.Context()); err != nil || j.step > 0 {
		return set, options, s, err
	}
	l, err := d.Load(c.Context(), control.LoadRequest{Name: name})
	j.pace = pace(l)
	return set, options, s, about(err, name)
}

func aboutJob(c *cobra.Command, err error) error {
	if errors.Is(err, meta.ErrInvalid) {
		return usage(c, err)
	}
	return err
}

func (a *forecasting) policies() ([]string, error) {
	if a.policy == "all" {
		return policy.Names(), nil
	}
	_, err := policy.New(a.policy)
	return []string{a.policy}, err
}

// read reads sizes and rates.
func (a *forecasting) read() (*job, error) {
	j := &job{nodes: a.nodes, ranks: a.ranks, epochs: a.epochs, step: a.step.Seconds(), packed: a.packed, ram: -1, nvme: -1}
	for _, v := range []struct {
		flag, text string
		to         *int64
	}{
		{"ram", a.ram, &j.ram}, {"nvme", a.nvme, &j.nvme},
		{"bytes", a.bytes, &j.bytes}, {"bandwidth", a.bandwidth, &j.bandwidth}, {"link", a.link, &j.link}, {"disk", a.disk, &j.disk},
	} {
		if v.text == "" {
			continue
		}
		n, err := meta.ParseBytes(trimRate(v.text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.flag, err)
		}
		if v.flag == "ram" && n < leastRAM { // as mount says it
			return nil, failf(meta.ErrInvalid, "ram budget of %s is not valid: give %s or more", meta.FormatBytes(n), meta.FormatBytes(leastRAM))
		}
		if *v.to = int64(n); n == 0 && v.flag != "nvme" {
			return nil, failf(meta.ErrInvalid, "%s %s is nothing", v.flag, v.text)
		}
	}
	switch {
	case a.nodes < 0:
		return nil, failf(meta.ErrInvalid, "%d nodes: use 1 or more", a.nodes)
	case a.epochs < 1 || a.epochs > mostEpochs:
		return nil, failf(meta.ErrInvalid, "%d epochs: use 1 to %d", a.epochs, mostEpochs)
	case a.step < 0 || a.step > longestStep:
		return nil, failf(meta.ErrInvalid, "step %v is no time to work on a batch: use up to %v", a.step, longestStep)
	case !(a.packed >= 0 && a.packed < 1):
		return nil, failf(meta.ErrInvalid, "packed %v is not a share from 0 to below 1", a.packed)
	}
	return j, nil
}

// trimRate lets a rate be written as such.
func trimRate(s string) string {
	if n := len(s); n > 2 && s[n-2:] == "/s" {
		return s[:n-2]
	}
	return s
}

// predict runs the job under each policy, and looks for what would remove the
// stall under the best.
func (j *job) predict(ctx context.Context, names []string) (*prediction, error) {
	p := &prediction{View: j.view.String(), epoch: j.view.Epoch, Records: j.set.Records, Bytes: j.set.Bytes, Nodes: j.nodes, Ranks: j.view.Ranks, Facts: j.facts}
	s, size := j.scenario(batchesRun)
	p.Scale, p.Steps = size.by, j.cut().Steps()
	if j.epochs > 1 && j.trace == nil {
		s.Epochs++ // the last one that is shown is followed by another, as all are
	}
	best := 0
	for i, name := range names {
		out, err := simulate.Run(ctx, s, planner(name))
		if err != nil {
			return nil, err
		}
		out.Epochs = out.Epochs[:min(j.epochs, len(out.Epochs))]
		p.Policies = append(p.Policies, prospectOf(name, out, size.by))
		if p.Policies[i].last().Seconds < p.Policies[best].last().Seconds {
			best = i
		}
	}
	p.Best = names[best]
	if p.Policies[best].last().Stall <= simulate.Calm {
		return p, nil
	}
	small, size := j.scenario(batchesSearched)
	found, err := simulate.Remedies(ctx, small, planner(p.Best))
	p.Remedies = j.remedies(found, size)
	return p, err
}

func planner(name string) func() policy.Planner {
	return func() policy.Planner {
		p, err := policy.New(name)
		if err != nil {
			panic(err) // it was asked before
		}
		return p
	}
}

// A dataset of more batches is simulated on a smaller scale: so many take a
// fraction of a second.
const (
	batchesRun      = 1 << 15
	batchesSearched = 1 << 11
)

// Bounds on what is asked for. Nothing changes after a few epochs.
const (
	mostEpochs  = 1000
	longestStep = 24 * time.Hour
)
