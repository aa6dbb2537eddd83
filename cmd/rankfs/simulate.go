package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"rankfs/cache/policy"
	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/forecast"
	"rankfs/meta"
)

func (p *program) simulateCommand() *cobra.Command {
	var a forecast.Options
	var traced string
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
			return p.simulate(c, args[0], traced, a)
		},
	}
	p.mountFlag(c)
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&a.RAM, "ram", "", "memory of a node for batches, `SIZE` as 16GiB")
	f.StringVar(&a.NVMe, "nvme", "", "disk of a node for batches, `SIZE`; 0B is none")
	f.IntVar(&a.Nodes, "nodes", 0, "`N` nodes, each with its share of the ranks")
	f.Uint64Var(&a.Ranks, "ranks", 0, "`N` ranks, all nodes together")
	f.StringVar(&a.Bandwidth, "bandwidth", "", "`RATE` of the source, all nodes together, as 500MiB")
	f.StringVar(&a.Link, "link", "", "`RATE` of a node's link to the others")
	f.StringVar(&a.Disk, "disk", "", "`RATE` at which a node's disk is read")
	f.Float64Var(&a.Packed, "packed", 0, "`SHARE` of its bytes that a batch has when it is packed, as 0.4")
	f.DurationVar(&a.Step, "step", 0, "`TIME` that a rank works on a batch, as 120ms")
	f.StringVar(&a.Bytes, "bytes", "", "`SIZE` of a dataset that does not exist yet")
	f.IntVar(&a.Epochs, "epochs", 3, "`N` epochs: the first and the last are shown, all with --json; of a trace, all it has")
	f.StringVar(&traced, "trace", "", "ranks read as a trace says: of a `FILE`, or learnt for a dataset of that name")
	f.StringVar(&a.Policy, "policy", policy.Names()[0], "`NAME` of the policy, or all")
	_ = c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(append(policy.Names(), "all"), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *program) simulate(c *cobra.Command, view, traced string, a forecast.Options) error {
	for _, name := range []string{"nodes", "ranks"} { // of which none stands for what is mounted
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
			return usage(c, fmt.Errorf("0 %s: use 1 or more", name))
		}
	}
	if a.Step == 0 && c.Flags().Changed("step") { // for what is measured
		return usage(c, fmt.Errorf("step 0s is no time to work on a batch: use more, or leave it out"))
	}
	names, err := a.Policies()
	if err != nil {
		return usage(c, err)
	}
	j, err := a.Job()
	if err != nil {
		return usage(c, err)
	}
	if traced != "" {
		t, err := p.traced(c, traced)
		if err != nil {
			return err
		}
		j.Follow(t, !c.Flags().Changed("epochs"))
	}
	set, options, s, err := p.known(c, view, j)
	if err != nil {
		return err
	}
	if err := j.Complete(set, options, s, p.cores); err != nil {
		return aboutJob(c, err)
	}
	if err := p.fits(c, j); err != nil {
		return err
	}
	o, err := j.Predict(c.Context(), names)
	switch {
	case errors.Is(err, context.Canceled):
		return meta.Worded(context.Canceled, "simulate %s: stopped", view)
	case err != nil:
		return aboutJob(c, err)
	}
	return p.print(o, func(w io.Writer) {
		o.Write(w)
		warn(w, o.Warning)
	})
}

// fits asks the daemon what ranks need together, and says if they have not that much.
func (p *program) fits(c *cobra.Command, j *forecast.Job) error {
	var x control.Explanation
	if name, nodes := j.View(); !j.Imaginary() {
		d, err := p.daemon()
		if err != nil {
			return err
		}
		if x, err = d.Explain(c.Context(), control.ExplainRequest{Name: name, Nodes: nodes}); err != nil {
			return about(err, name)
		}
	}
	return aboutJob(c, j.Fits(x))
}

// known asks the daemon what it knows of the dataset and of its node; of a dataset
// that does not exist yet, nothing.
func (p *program) known(c *cobra.Command, view string, j *forecast.Job) (set control.Dataset, options string, s control.Status, err error) {
	name, options, _ := meta.SplitView(view)
	if j.Imaginary() {
		set, err := j.Imagined(name)
		return set, options, s, aboutJob(c, err)
	}
	d, err := p.daemon()
	if err != nil {
		return set, options, s, err
	}
	if set, err = d.Dataset(c.Context(), name); err != nil {
		return set, options, s, about(err, name)
	}
	if s, err = d.Status(c.Context()); err != nil || !j.WantsPace() {
		return set, options, s, err
	}
	l, err := d.Load(c.Context(), control.LoadRequest{Name: name})
	j.Observe(l)
	return set, options, s, about(err, name)
}

// traced finds the trace to replay: in a file, or as learnt for a dataset.
func (p *program) traced(c *cobra.Command, name string) (*trace.Trace, error) {
	t, err := readTrace("trace", name)
	if err == nil {
		return &t, nil
	}
	if !errors.Is(err, meta.ErrNotExist) || meta.CheckName(name) != nil {
		return nil, usage(c, err)
	}
	d, err := p.daemon()
	if err != nil {
		return nil, err
	}
	learnt, err := d.Trace(c.Context(), name)
	if errors.Is(err, meta.ErrNotExist) {
		return nil, meta.Worded(meta.ErrNotExist, "trace %s: no such file, and nothing was learnt for a dataset of that name; see what is with: rankfs trace ls", name)
	}
	if err != nil {
		return nil, err
	}
	t, err = trace.Parse(learnt.Text)
	return &t, err
}

func aboutJob(c *cobra.Command, err error) error {
	if errors.Is(err, meta.ErrInvalid) {
		return usage(c, err)
	}
	return err
}
