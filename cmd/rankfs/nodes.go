package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

func (p *program) nodeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "node",
		Short: "Look at the nodes of the cluster, drain them, remove them",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	p.mountFlag(c)
	c.AddCommand(p.listNodesCommand(), p.drainCommand(), p.removeNodeCommand())
	return c
}

func (p *program) listNodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the nodes of the cluster",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := p.daemon()
			if err != nil {
				return err
			}
			k, err := d.Cluster(c.Context())
			if err != nil {
				return err
			}
			return p.print(k, func(w io.Writer) { writeNodes(w, k) })
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
		t.Add(self, m.ID, m.Host, m.Addr, m.State, vote(k, m), orDash(m.Role), lag, m.Entered.UTC().Format("2006-01-02 15:04 UTC"))
	}
	t.Write(w)
	fmt.Fprintln(w, "\n*: this node; LAG: changes of the cluster that a node does not know yet, as the\nleader counts them")
	switch {
	case k.Removed:
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap("this node was removed from the cluster, and this is what it "+
			"knew before; see: rankfs status", 71, "  "))
	case k.Leader == "":
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap("no node leads: nothing can be registered, planned or removed until "+
			"more than half of the voters are up and reach each other", 71, "  "))
	case onlyOperator(k) != "":
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap(fmt.Sprintf("%s is the only operator: without it no node can be let in or "+
			"removed; let in another: rankfs token create --role operator", onlyOperator(k)), 71, "  "))
	}
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

func (p *program) drainCommand() *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "drain NODE",
		Short: "Give a node no new work, or some again",
		Long: `Give a node no new work. New plans place no ranks on it but those that have
been there, and it goes on serving what it has to them and to other nodes.

NODE is its id, or its host if that has one node only.`,
		Args:              wants("NODE"),
		ValidArgsFunction: p.nodeNames,
		RunE: func(c *cobra.Command, args []string) error {
			d, err := p.daemon()
			if err != nil {
				return err
			}
			if err := d.DrainNode(c.Context(), control.DrainRequest{Node: args[0], Drain: !undo}); err != nil {
				return err
			}
			drained := struct {
				Node     string `json:"node"`
				Draining bool   `json:"draining"`
			}{args[0], !undo}
			return p.print(drained, func(w io.Writer) {
				if undo {
					fmt.Fprintf(w, "%s gets new work again\n", args[0])
					return
				}
				fmt.Fprintf(w, "%s gets no new work; plans that are pinned stay as they are\n"+
					"when its jobs are done: rankfs node rm %[1]s\n", args[0])
			})
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "let it get new work again")
	return c
}

func (p *program) removeNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NODE",
		Aliases: []string{"remove"},
		Short:   "Take a node out of the cluster for good",
		Long: `Take a node out of the cluster for good. No other node talks to it any more,
and it can come back only as a new one.

NODE is its id, or its host if that has one node only.`,
		Args:              wants("NODE"),
		ValidArgsFunction: p.nodeNames,
		RunE: func(c *cobra.Command, args []string) error {
			d, err := p.daemon()
			if err != nil {
				return err
			}
			if err := d.RemoveNode(c.Context(), args[0]); err != nil {
				return err
			}
			removed := struct {
				Removed string `json:"removed"`
			}{args[0]}
			return p.print(removed, func(w io.Writer) {
				fmt.Fprintf(w, "%s\n%s\n", terminal.Wrap(fmt.Sprintf("removed %s: no node talks to it any more; what its ranks held of "+
					"queues is for others, and what it alone had in memory comes from the source again", args[0]), 79, ""),
					"unmount it there; to let the host in again, as a new node, mount with an empty\n"+
						"--state and a token from: rankfs token create")
			})
		},
	}
}

// nodeNames completes the name of a node, with a description: the host where that is
// enough.
func (p *program) nodeNames(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	d, err := p.daemon()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	k, err := d.Cluster(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	on := make(map[string]int) // nodes of a host
	for _, m := range k.Nodes {
		on[m.Host]++
	}
	var names []cobra.Completion
	for _, m := range k.Nodes {
		name, what := m.Host, m.ID
		if on[m.Host] > 1 {
			name, what = m.ID, m.Host
		}
		names = append(names, cobra.CompletionWithDesc(name, fmt.Sprintf("%s, %s, %s", what, m.Addr, m.State)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
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
		"down", terminal.Wrap(strings.Join(down, ", "), 70, "          "),
	)
}

// date writes a time to be read, to the second.
func date(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }
