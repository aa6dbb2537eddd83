package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

func (p *program) warmCommand() *cobra.Command {
	r := control.WarmRequest{}
	var rank uint64
	c := &cobra.Command{
		Use:   "warm NAME[@OPTIONS]",
		Short: "Bring a view's batches into the cache before a job starts",
		Long: `Bring into this node's cache the batches of a view that its ranks will read, as
they are planned; or, where batches are made of chunks of the source, the chunks
that this node fetches.

It takes the place of nothing that a running job will come to, and ends when
memory and disks are full. The exit code is 0 if all are ready then; it is 1 if
some are not, or if all of them are for other nodes.

  rankfs warm train
  rankfs warm train@epoch=3 --rank 0
  rankfs warm train --check`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			r.View = args[0]
			if c.Flags().Changed("rank") {
				r.Rank = &rank
			}
			if r.Background && r.Check {
				return usage(c, meta.Worded(meta.ErrInvalid, "--background and --check do not go together"))
			}
			return p.warm(c.Context(), r)
		},
	}
	p.mountFlag(c)
	f := c.Flags()
	f.SortFlags = false
	f.Uint64Var(&rank, "rank", 0, "only what rank `N` reads")
	f.BoolVar(&r.Background, "background", false, "return at once; the daemon goes on")
	f.BoolVar(&r.Check, "check", false, "only say how many are ready, and in which tier")
	return c
}

func (p *program) warm(ctx context.Context, r control.WarmRequest) error {
	d, err := p.daemon()
	if err != nil {
		return err
	}
	m := terminal.NewMeter(p.err, p.now, r.View)
	c, err := d.Warm(ctx, r, m.Show)
	m.Done()
	switch {
	case ctx.Err() != nil:
		return bySignal("what was ready by then is")
	case err != nil:
		return aboutCached(err, r.View)
	}
	if err := p.print(c, func(w io.Writer) { writeWarm(w, c) }); err != nil {
		return err
	}
	return unready(c, r)
}

// unready is the error of a warm-up that did not get to the end.
func unready(c control.Warm, r control.WarmRequest) error {
	switch {
	case c.Elsewhere:
		return failure.Hint(fmt.Errorf("%s has nothing that this node would read, so nothing was made ready", r.View),
			"warm it up on the nodes that this names: rankfs plan %s", r.View)
	case c.NoRoom != "":
		err := meta.Worded(meta.ErrNoSpace, "%s of %s are ready; the rest does not fit: %s", terminal.Count(c.Ready), some(c.All, c.Kind), c.NoRoom)
		if c.TooLarge != "" {
			return err
		}
		return failure.Hint(err, "see what else is there with: rankfs cache ls\nand give it up with: rankfs cache evict NAME")
	case r.Background || c.Ready == c.All:
		return nil
	case r.Check:
		return failure.Hint(meta.Worded(meta.ErrNoSpace, "%s of %s are not ready", terminal.Count(c.All-c.Ready), some(c.All, c.Kind)),
			"bring them with: rankfs warm %s", r.View)
	}
	return meta.Worded(meta.ErrNoSpace, "%s of %s are ready: others have made way for what ranks read meanwhile", terminal.Count(c.Ready), some(c.All, c.Kind))
}

func writeWarm(w io.Writer, c control.Warm) {
	if c.Begun {
		fmt.Fprintf(w, "%s: %s of %s are ready; the daemon goes on\n  see how far it is: rankfs warm %[1]s --check\n",
			c.View, terminal.Count(c.Ready), some(c.All, c.Kind))
		return
	}
	where := ""
	if tiers := readyIn(c); tiers != "" {
		where = ": " + tiers
	}
	fmt.Fprintf(w, "%s: %s of %s ready%s\n", c.View, terminal.Count(c.Ready), some(c.All, c.Kind), where)
	switch {
	case c.Elsewhere && c.Kind == control.Chunks:
		fmt.Fprintln(w, "  other nodes fetch its chunks")
	case c.Elsewhere:
		fmt.Fprintln(w, "  its ranks are on other nodes")
	case c.Open:
		fmt.Fprintf(w, "  ranks may yet start elsewhere; have them where they are planned: rankfs plan %s --settle\n", c.View)
	}
}

// readyIn says in which tiers how many are.
func readyIn(c control.Warm) string {
	var tiers []string
	for _, tier := range []struct {
		n    uint64
		name string
	}{{c.RAM.Batches, "in ram"}, {c.Packed.Batches, "packed"}, {c.NVMe.Batches, "on nvme"}} {
		if tier.n > 0 {
			tiers = append(tiers, terminal.Count(tier.n)+" "+tier.name)
		}
	}
	return strings.Join(tiers, ", ")
}
