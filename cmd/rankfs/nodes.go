package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// NodeCommands are the commands below rankfs node.
type nodeCommands struct{ *program }

func (p *program) nodeCommand() *cobra.Command {
	g := nodeCommands{p}
	return p.group(&cobra.Command{Use: "node", Short: "Look at the nodes of the cluster, drain, remove, promote them"},
		g.list(), g.drain(), g.remove(), g.promote())
}

func (p nodeCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the nodes of the cluster",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Cluster, writeNodes)
		},
	}
}

func writeNodes(w io.Writer, k control.Cluster) {
	t := terminal.NewTable("", "", "NODE", "HOST", "ADDRESS", "STATE", "VOTE", "ROLE", " LAG", "SINCE")
	for _, m := range k.Nodes {
		self, lag := "", "-"
		if m.ID == k.Self {
			self = "*"
		}
		if m.Lag != nil {
			lag = terminal.Count(*m.Lag)
		}
		t.Add(self, m.ID, hostOf(m), m.Addr, m.State, vote(k, m), orDash(m.Role), lag, m.Entered.UTC().Format("2006-01-02 15:04 UTC"))
	}
	t.Write(w)
	fmt.Fprintln(w, "\n*: this node; LAG: changes of the cluster that a node does not know yet, as the\nleader counts them")
	for _, m := range k.Nodes {
		if m.Leaving != nil {
			fmt.Fprintf(w, "\n%s\n", terminal.Wrap(fmt.Sprintf("%s: %s of the shuffle pool would be lost with it: %s",
				m.Host, leavingMaps(*m.Leaving), cmp.Or(m.Leaving.Stuck, "other nodes get copies")), 79, ""))
		}
	}
	switch {
	case k.Removed:
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap("this node was removed from the cluster, and this is what it "+
			"knew before; see: rankfs status", 71, "  "))
	case k.Leader == "":
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap("no node leads: nothing can be registered, planned or removed until "+
			"more than half of the voters are up and reach each other", 71, "  "))
	case onlyOperator(k) != "":
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap(fmt.Sprintf("%s is the only operator: without it no node can be let in or "+
			"removed; make another one: rankfs node promote NODE", onlyOperator(k)), 71, "  "))
	}
}

// hostOf is the host of a node, and what that is called now if it is another name.
func hostOf(m control.Member) string {
	if m.Called == "" {
		return m.Host
	}
	return fmt.Sprintf("%s (called %s)", m.Host, m.Called)
}

// memberNamed is the node with this id, or with this name of its host: the one by which
// it was admitted, or else that of now.
func memberNamed(k control.Cluster, name string) (m control.Member, ok bool) {
	for _, is := range []func(control.Member) bool{
		func(m control.Member) bool { return m.ID == name },
		func(m control.Member) bool { return meta.SameHost(m.Host, name) },
		func(m control.Member) bool { return meta.SameHost(m.Called, name) },
	} {
		if i := slices.IndexFunc(k.Nodes, is); i >= 0 {
			return k.Nodes[i], true
		}
	}
	return m, false
}

// onlyOperator is the host of the one operator that there is, of three nodes or
// more.
func onlyOperator(k control.Cluster) string {
	host, operators := "", 0
	for _, m := range k.Nodes {
		if m.Role == "operator" {
			host, operators = m.Host, operators+1
		}
	}
	if operators != 1 || len(k.Nodes) < 3 {
		return ""
	}
	return host
}

func vote(k control.Cluster, m control.Member) string {
	switch {
	case m.ID == k.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "-"
}

func (p nodeCommands) drain() *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "drain NODE",
		Short: "Drain a node, or end that",
		Long: `Give a node no new work. New plans place no ranks on it but those that have
been there, and it goes on serving what it has to them and to other nodes.

What it has of the shuffle pool is copied to other nodes, which is waited for: when
this returns, nothing of that is lost with the node. To stop waiting stops no copy.

NODE is its id, or its host if that has one node only.`,
		Args:              wants("NODE"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			type drained struct {
				Node     string `json:"node"`
				Draining bool   `json:"draining"`
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (drained, error) {
				err := d.DrainNode(ctx, control.DrainRequest{Node: args[0], Drain: !undo})
				if err == nil && !undo {
					err = p.awaitLeaving(ctx, d, args[0])
				}
				return drained{args[0], !undo}, err
			}, func(w io.Writer, _ drained) {
				if undo {
					fmt.Fprintf(w, "%s gets new work again\n", args[0])
					return
				}
				fmt.Fprintf(w, "%s gets no new work; settled plans stay as they are\n"+
					"when its jobs are done: rankfs node rm %[1]s\n", args[0])
			})
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "let it get new work again")
	return c
}

// lookTime is the time between two looks at the progress of a node.
const lookTime = 200 * time.Millisecond

// awaitLeaving waits until nothing of the shuffle pool would be lost with a node that is
// drained.
func (p nodeCommands) awaitLeaving(ctx context.Context, d *control.Client, name string) error {
	meter := terminal.NewMeter(p.err, p.now, "the shuffle pool off "+name)
	defer meter.Done()
	for all := int64(0); ; {
		k, err := d.Cluster(ctx)
		if err != nil {
			return err
		}
		m, ok := memberNamed(k, name)
		if !ok || m.Leaving == nil {
			return nil
		}
		left := *m.Leaving
		switch {
		case left.Stuck != "":
			return meta.Worded(meta.ErrNoSpace, "%s gets no new work, but %s of the shuffle pool would be lost with it: %s", name, leavingMaps(left), left.Stuck)
		case m.State == "down":
			return failure.Hint(meta.Worded(meta.ErrUnavailable, "%s is down, and %s of the shuffle pool would be lost with it", name, leavingMaps(left)),
				"start it, and see how many are left: rankfs node ls")
		}
		all = max(all, left.Bytes)
		meter.Show(control.Progress{Doing: "moving", Bytes: all - left.Bytes, Total: all})
		select {
		case <-ctx.Done():
			return failure.Hint(meta.Worded(context.Canceled, "stopped waiting: %s gets no new work, and goes on copying %s of the shuffle pool", name, leavingMaps(left)),
				"see how many are left: rankfs node ls")
		case <-time.After(lookTime):
		}
	}
}

func leavingMaps(l control.Leaving) string {
	return fmt.Sprintf("%s, %s,", terminal.Plural(l.Maps, "map"), terminal.Bytes(l.Bytes))
}

func (p nodeCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NODE",
		Aliases: []string{"remove"},
		Short:   "Take a node out of the cluster for good",
		Long: `Take a node out of the cluster for good. No other node talks to it any more,
and it can come back only as a new one. Maps of the shuffle pool that it alone has
are lost: drain it first.

NODE is its id, or its host if that has one node only.`,
		Args:              wants("NODE"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			return removed(c, p, args[0], (*control.Client).RemoveNode, func(w io.Writer) {
				fmt.Fprintf(w, "%s\n%s\n", terminal.Wrap(fmt.Sprintf("removed %s: no node talks to it any more; what its ranks held of "+
					"queues is for others, and what it alone had of datasets comes from the source again; rankfs status says "+
					"if maps of the shuffle pool are lost with it", args[0]), 79, ""),
					"unmount it there; to let the host in again, as a new node, mount with an empty\n"+
						"--state and a token from: rankfs token create")
			})
		},
	}
}

func (p nodeCommands) promote() *cobra.Command {
	return &cobra.Command{
		Use:   "promote NODE",
		Short: "Make a member of the cluster an operator",
		Long: `Make a member of the cluster an operator, which may let nodes in, drain and
remove them, and change settings.

On an operator that is done at once. Where all operators are lost for good, root
on most of the voters has to say it, on each for itself and within an hour; until
then it ends with 1:

  voter1# rankfs node promote node2
  voter2# rankfs node promote node2
  node2#  rankfs node rm node1

NODE is its id, or its host if that has one node only; rankfs node ls shows which
nodes vote.`,
		Args:              wants("NODE"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			var said control.Promotion
			err := answer(c, p, func(d *control.Client, ctx context.Context) (_ control.Promotion, err error) {
				said, err = d.PromoteNode(ctx, args[0])
				return said, err
			}, writePromotion)
			if err == nil {
				err = unpromoted(said)
			}
			return err
		},
	}
}

func writePromotion(w io.Writer, s control.Promotion) {
	if s.Role == "operator" {
		fmt.Fprintf(w, "%s (%s) is an operator\n", s.Host, s.ID)
		return
	}
	fmt.Fprintf(w, "%s (%s): %d of %s have said that it is to be an operator, and %d are needed\n",
		s.Host, s.ID, len(s.Said), terminal.Plural(len(s.Said)+len(s.Silent), "voter"), s.Needed)
}

// unpromoted is the error of a node that is no operator yet.
func unpromoted(s control.Promotion) error {
	if s.Role == "operator" {
		return nil
	}
	return failure.Hint(fmt.Errorf("%s (%s) is not an operator yet", s.Host, s.ID),
		"as root on %s, within an hour: rankfs node promote %s", strings.Join(s.Silent, " or "), s.ID)
}

// names completes the name of a node, with a description: the host where that is
// enough.
func (p nodeCommands) names(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(c, p, args, (*control.Client).Cluster, nodeChoices)
}

func nodeChoices(k control.Cluster) (names []cobra.Completion) {
	on := make(map[string]int) // nodes of a host
	for _, m := range k.Nodes {
		on[m.Host]++
	}
	for _, m := range k.Nodes {
		name, what := m.Host, m.ID
		if on[m.Host] > 1 {
			name, what = m.ID, m.Host
		}
		names = append(names, cobra.CompletionWithDesc(name, fmt.Sprintf("%s, %s, %s", what, m.Addr, m.State)))
	}
	return names
}

// maxNamed bounds the nodes that are down and named; for more the message refers to
// the list.
const maxNamed = 4

func writeCluster(w io.Writer, k control.Cluster) {
	if len(k.Nodes) == 0 || k.Removed {
		return // a daemon that is not of any yet, or of none any more
	}
	if len(k.Nodes) == 1 {
		m := k.Nodes[0]
		fmt.Fprintf(w, "\ncluster: this node alone, %s (%s) at %s\n", m.Host, m.ID, m.Addr)
		return
	}
	var voters, up, nodesUp int
	var down []string
	leader := "NONE"
	for _, m := range k.Nodes {
		isUp := m.State != "down"
		switch {
		case isUp:
			nodesUp++
		case len(down) < maxNamed:
			down = append(down, m.Host)
		}
		if m.Voter {
			voters++
		}
		if m.Voter && isUp {
			up++
		}
		if m.ID == k.Leader {
			leader = fmt.Sprintf("%s (%s)", m.Host, m.ID)
		}
	}
	if more := len(k.Nodes) - nodesUp - len(down); more > 0 {
		down = append(down, fmt.Sprintf("and %s; see: rankfs node ls", terminal.Plural(more, "other")))
	}
	fmt.Fprintln(w, "\ncluster")
	terminal.Pairs(w, "  ",
		"leader", fmt.Sprintf("%s, in term %d", leader, k.Term),
		"voters", fmt.Sprintf("%d of %d up", up, voters),
		"nodes", fmt.Sprintf("%s of %s up", terminal.Count(nodesUp), terminal.Count(len(k.Nodes))),
		"plans", terminal.Count(k.Plans)+" settled",
		"down", terminal.Wrap(strings.Join(down, ", "), 70, "          "),
	)
}

// date writes a time to be read, to the second.
func date(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }
