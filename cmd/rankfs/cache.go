package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// CacheCommands are the commands below rankfs cache.
type cacheCommands struct{ *program }

func (p *program) cacheCommand() *cobra.Command {
	g := cacheCommands{p}
	return p.group(&cobra.Command{
		Use:   "cache",
		Short: "See what is in the cache, pin it, give it up, decide how",
		Long: `See what of each view is in this node's cache, have it stay there, give it up,
or change how it is decided what is kept.

Where the batches of a view are made of chunks of its source, these are what is
kept, for all views that are made of them.`,
	}, g.list(), g.pin(), g.unpin(), g.evict(), g.policy())
}

func (p cacheCommands) policy() *cobra.Command {
	return &cobra.Command{
		Use:   "policy [NAME]",
		Short: "Show or change the policy that decides what is kept",
		Long: `Show the policy that decides what the cache keeps, and in which form, or change
it until the next mount. Nothing is thrown away before its room is needed.

See what each would come to with: rankfs simulate NAME --policy all`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if _, err := policy.New(args[0]); err != nil {
				return usage(c, err)
			}
			return wants("NAME")(c, args)
		},
		ValidArgs: policy.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Policy, error) {
				return d.Policy(ctx, control.PolicyRequest{Name: strings.Join(args, "")})
			}, writePolicy)
		},
	}
}

func writePolicy(w io.Writer, now control.Policy) {
	others := slices.DeleteFunc(slices.Clone(now.Names), func(name string) bool { return name == now.Name })
	terminal.Pairs(w, "", "policy", now.Name, "others", strings.Join(others, ", "))
}

func (p cacheCommands) pin() *cobra.Command {
	r := control.CachePinRequest{}
	c := &cobra.Command{
		Use:   "pin NAME[@OPTIONS]",
		Short: "Keep what is in the cache of a view at a tier or above",
		Long: `Keep batches of a view from going below a tier, as long as the budgets allow:
ram, packed (in memory, compressed) or nvme. It holds until it is unpinned, over
restarts too. What is not in the cache yet is not fetched: see rankfs warm.`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			r.View = args[0]
			if tiers := []string{control.TierRAM, control.TierPacked, control.TierNVMe}; !slices.Contains(tiers, r.Tier) {
				return usage(c, meta.Worded(meta.ErrInvalid, "tier %q is not one of %s", r.Tier, strings.Join(tiers, ", ")))
			}
			return p.setPin(c, r)
		},
	}
	c.Flags().StringVar(&r.Tier, "tier", control.TierRAM, "keep it at `TIER` or above: ram, packed, nvme")
	return c
}

func (p cacheCommands) unpin() *cobra.Command {
	return &cobra.Command{
		Use:               "unpin NAME[@OPTIONS]",
		Short:             "Let what was pinned go when its room is needed",
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			return p.setPin(c, control.CachePinRequest{View: args[0]})
		},
	}
}

// setPin pins a view, or no longer.
func (p cacheCommands) setPin(c *cobra.Command, r control.CachePinRequest) error {
	return answer(c, p, func(d *control.Client, ctx context.Context) (control.CachePin, error) {
		pin, err := d.PinCache(ctx, r)
		return pin, aboutCached(err, r.View)
	}, writePin)
}

func writePin(w io.Writer, pin control.CachePin) {
	if pin.Tier == "" {
		fmt.Fprintf(w, "%s: no longer pinned at %s\n", pin.View, pin.Was)
		return
	}
	was := ""
	if pin.Was != "" && pin.Was != pin.Tier {
		was = ", no longer at " + pin.Was
	}
	fmt.Fprintf(w, "%s: pinned at %s%s\n", pin.View, pin.Tier, was)
	if pin.Kind == control.Chunks {
		name, _, _ := meta.SplitView(pin.View)
		fmt.Fprintf(w, "  its batches are made of chunks, so these are pinned, for all views of %s\n", name)
	}
	if pin.Once {
		fmt.Fprintln(w, "  of this epoch alone: others have other batches")
	}
	warn(w, pin.TooLarge)
}

func (p cacheCommands) evict() *cobra.Command {
	return &cobra.Command{
		Use:   "evict NAME[@OPTIONS]",
		Short: "Give up all that is in the cache of a dataset or a view",
		Long: `Give up all that is in this node's cache of a dataset, or of one view of it: in
memory, packed and on disk. What ranks hold stays. A warm-up of it ends.`,
		Args:              wants("NAME"),
		ValidArgsFunction: p.datasetNames,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).Evict, aboutCached), writeEviction)
		},
	}
}

func writeEviction(w io.Writer, e control.Eviction) {
	if e.Evicted.Batches == 0 && e.Stayed.Batches == 0 {
		fmt.Fprintf(w, "%s: nothing of it was in the cache\n", e.View)
		return
	}
	fmt.Fprintf(w, "%s: %s evicted, %s\n", e.View, some(e.Evicted.Batches, e.Kind), terminal.Bytes(e.Evicted.Bytes))
	if n := e.Stayed; n.Batches > 0 {
		fmt.Fprintf(w, "  %s stayed, %s: held by ranks, or just being made\n", some(n.Batches, e.Kind), terminal.Bytes(n.Bytes))
	}
}

// some counts batches or chunks.
func some[N int | uint64](n N, kind string) string {
	if kind == control.Chunks {
		return terminal.Plural(n, "chunk")
	}
	return batches(uint64(n))
}

func batches(n uint64) string {
	if n == 1 {
		return "1 batch"
	}
	return terminal.Count(n) + " batches"
}

func (p cacheCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List how much of each view is cached, and what is pinned",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Cached, writeCached)
		},
	}
}

func writeCached(w io.Writer, list control.CacheList) {
	fmt.Fprintf(w, "policy: %s\n\n", list.Policy)
	if len(list.Views) == 0 {
		fmt.Fprintln(w, "nothing is in the cache; bring something with: rankfs warm NAME")
		return
	}
	t := terminal.NewTable("", "VIEW", "KEPT", " RAM", " ", " PACKED", " ", " NVME", " ", "PINNED")
	for _, v := range list.Views {
		cells := []string{v.View, v.Kind}
		if v.View == "" {
			cells[0] = "(others)"
		}
		for _, n := range []control.Held{v.RAM, v.Packed, v.NVMe} {
			cells = append(cells, terminal.Count(n.Batches), terminal.Bytes(n.Bytes))
		}
		pinned := "-"
		if v.Pinned != "" {
			pinned = v.Pinned
		}
		t.Add(append(cells, pinned)...)
	}
	t.Write(w)
	for _, u := range list.Warming {
		fmt.Fprintf(w, "\n%s is being warmed up: %s of %s done\n", u.View, terminal.Count(u.Done), terminal.Count(u.Of))
	}
}

// aboutCached adds the next step to an error about what is in the cache.
func aboutCached(err error, view string) error {
	name, _, _ := meta.SplitView(view)
	if errors.Is(err, meta.ErrNoPin) {
		return failure.Hint(err, "see what is pinned with: rankfs cache ls")
	}
	return about(err, name)
}
