package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
)

func (p *program) statusCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how a mount is doing, or all nodes of its cluster",
		Args:  wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			if all {
				return answer(c, p, (*control.Client).All, writeAll)
			}
			return answer(c, p, (*control.Client).Status, func(w io.Writer, s control.Status) { writeStatus(w, s, p.now()) })
		},
	}
	p.mountFlag(c)
	c.Flags().BoolVar(&all, "all", false, "a line for each node of the cluster")
	return c
}

// writeAll is a line for each node, and below why some say nothing.
func writeAll(w io.Writer, nodes []control.NodeStatus) {
	t := terminal.NewTable("", "NODE", "HOST", "STATE", "ROLE", "VERSION", " RANKS", " PLANS", "  RAM", " OF", "  NVME", " OF", "HEALTH")
	for _, n := range nodes {
		if n.NodeSummary == nil {
			t.Add(n.ID, hostOf(n.Member), n.State, orDash(n.Role), "-", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		var ram, nvme control.Tier
		for _, tier := range n.Tiers {
			sum := &nvme
			if tier.Name == "ram" {
				sum = &ram
			}
			sum.Used += tier.Used
			sum.Budget += tier.Budget
		}
		t.Add(n.ID, hostOf(n.Member), n.State, orDash(n.Role), n.Version, terminal.Count(n.Readers), countOrDash(n.Plans),
			terminal.Bytes(ram.Used), terminal.Bytes(ram.Budget), orNone(nvme.Used, nvme.Budget), orNone(nvme.Budget, nvme.Budget), inShort(n.Faults))
	}
	t.Write(w)
	for _, n := range nodes {
		if n.NodeSummary == nil {
			fmt.Fprintf(w, "\n%s\n", terminal.Wrap(fmt.Sprintf("%s (%s): %s", n.Host, n.ID, n.Error), 79, "  "))
		}
	}
}

// countOrDash is a number, if it is known.
func countOrDash(n *int) string {
	if n == nil {
		return "-"
	}
	return terminal.Count(*n)
}

// orNone is a number of bytes of a tier, if there is one.
func orNone(bytes, budget int64) string {
	if budget == 0 {
		return "-"
	}
	return terminal.Bytes(bytes)
}

// inShort is the kinds of faults.
func inShort(faults []control.Fault) string {
	if len(faults) == 0 {
		return "ok"
	}
	var kinds []string
	for _, f := range faults {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), ",")
}

func writeStatus(w io.Writer, s control.Status, now time.Time) {
	terminal.Pairs(w, "",
		"mount", s.Mount,
		"state", s.State,
		"daemon", fmt.Sprintf("pid %d, rankfs %s, up %s", s.PID, s.Version, terminal.Span(now.Sub(s.Since))),
	)
	for _, f := range s.Faults {
		fmt.Fprintf(w, "\nWARNING: %s\n", terminal.Wrap(fmt.Sprintf("%s (for %s)", f.What, terminal.Span(now.Sub(f.Since))), 71, "  "))
	}
	writePassthrough(w, s.Passthrough, s.Counters.BatchReads)
	writeTiers(w, s.Tiers)
	writePool(w, s.Pool)
	writeCounters(w, s.Counters)
	writeHDFS(w, s.HDFS)
	writeCluster(w, s.Cluster)
	writePeers(w, s.Peers)
	writeHolders(w, s.Leases, now)
	fmt.Fprintln(w)
	if len(s.Datasets) > 0 {
		fmt.Fprintln(w, "datasets")
		writeDatasetTable(w, "  ", s.Datasets)
	} else {
		writeDatasets(w, nil)
	}
}

func writePassthrough(w io.Writer, p control.Passthrough, reads uint64) {
	if p.On {
		fmt.Fprintln(w, "\npassthrough ON: the kernel reads and maps batches without the daemon")
	} else {
		fmt.Fprintln(w, "\npassthrough OFF: what is read of a batch goes through the daemon, slowly")
		fmt.Fprintln(w, "  "+terminal.Wrap(p.Reason, 76, "  "))
	}
	fmt.Fprintf(w, "  READ requests that reached the daemon: %s\n", terminal.Count(reads))
}

func writeTiers(w io.Writer, tiers []control.Tier) {
	fmt.Fprintln(w)
	t := terminal.NewTable("", "TIER", " USED", " BUDGET", " DYING", " SLABS", "STATE", "WHERE")
	for _, tier := range tiers {
		state := tier.State
		if tier.Name == "ram" {
			state, _, _ = strings.Cut(state, ": ") // the rest is in a warning
		}
		t.Add(tier.Name, terminal.Bytes(tier.Used), terminal.Bytes(tier.Budget), terminal.Bytes(tier.Dying), terminal.Count(tier.Slabs), state, tier.Where)
	}
	t.Write(w)
	for _, tier := range tiers {
		if tier.Empty != "" {
			fmt.Fprintf(w, "  %s\n", terminal.Wrap(fmt.Sprintf("%s in %s is empty: %s", tier.Name, tier.Where, tier.Empty), 76, "  "))
		}
	}
}

// writePool says how the shuffle pool is.
func writePool(w io.Writer, p *control.Pool) {
	if p == nil {
		return
	}
	fmt.Fprintln(w, "\nshuffle pool")
	missing := ""
	if p.Missing+p.Away+p.Lost > 0 {
		missing = fmt.Sprintf("%s copies; %s lost, %s away, on nodes that are down",
			terminal.Count(p.Missing), terminal.Plural(p.Lost, "map"), terminal.Count(p.Away))
	}
	terminal.Pairs(w, "  ",
		"memory", fmt.Sprintf("%s of %s here", terminal.Bytes(p.Used), terminal.Bytes(p.Budget)),
		"disk", diskOf(p),
		"jobs", fmt.Sprintf("%s: %s, %s, %s", terminal.Count(p.Jobs), terminal.Plural(p.Stages, "stage"), terminal.Plural(p.Maps, "map"), terminal.Bytes(p.Bytes)),
		"missing", missing,
		"damaged", damagedCopies(p.Damaged),
		"waiting", waitingHere(p.Waiting),
	)
}

func diskOf(p *control.Pool) string {
	if p.DiskMax == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s here", terminal.Bytes(p.Disk), terminal.Bytes(p.DiskMax))
}

func damagedCopies(n uint64) string {
	if n == 0 {
		return ""
	}
	return terminal.Count(n) + " copies here had other bytes than were committed, and were made anew"
}

func waitingHere(opens int) string {
	if opens == 0 {
		return ""
	}
	return terminal.Plural(opens, "open") + " of parts here; see: rankfs stall JOB/STAGE"
}

func writeHDFS(w io.Writer, h *control.HDFS) {
	if h == nil {
		return
	}
	fmt.Fprintf(w, "\nhdfs: %s received, %s local; %s given up, %s corrupt; %s\n",
		terminal.Bytes(int64(h.Bytes)), terminal.Bytes(int64(h.Local)), terminal.Plural(h.Failures, "replica"), terminal.Count(h.Corrupt), terminal.Plural(h.Streams, "stream"))
	fmt.Fprintf(w, "  %s by file, %s local over TCP, %s remote\n", terminal.Bytes(int64(h.Files)), terminal.Bytes(int64(h.LocalTCP)), terminal.Bytes(int64(h.Remote)))
	fmt.Fprintf(w, "  %s\n", terminal.Wrap("local blocks: "+h.LocalBlocks, 76, "  "))
}

// maxPeers is how many other nodes are shown, those with most bytes; the others
// are in status --json.
const maxPeers = 16

func writePeers(w io.Writer, p *control.Peers) {
	if p == nil {
		return
	}
	fmt.Fprintln(w, "\nother nodes, since the mount")
	say := func(t control.Traffic) string {
		return fmt.Sprintf("%s: %s in %s; %s refused, %s failed",
			terminal.Bytes(int64(t.Bytes)), terminal.Plural(t.Records, "record"), terminal.Plural(t.Requests, "request"), terminal.Count(t.Refused), terminal.Count(t.Failed))
	}
	hedges, corrupt, turned := "", "", ""
	if p.Hedges > 0 {
		hedges = fmt.Sprintf("%s, as a node was slow: the source was asked too, and faster %s", terminal.Count(p.Hedges), terminal.Plural(p.HedgesWon, "time"))
	}
	if p.Corrupt > 0 {
		corrupt = terminal.Plural(p.Corrupt, "answer") + " with a wrong checksum, given up"
	}
	if p.Turned > 0 {
		turned = terminal.Plural(p.Turned, "connection") + " over a limit"
	}
	terminal.Pairs(w, "  ", "received", say(p.Received), "sent", say(p.Sent), "hedges", hedges, "corrupt", corrupt, "turned away", turned)
	if len(p.Nodes) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := terminal.NewTable("  ", "HOST", " RECEIVED", " RECORDS", " REFUSED", " FAILED", " SENT", " RECORDS", "")
	for _, n := range p.Nodes[:min(len(p.Nodes), maxPeers)] {
		backOff := ""
		if n.BackOff > 0 {
			backOff = fmt.Sprintf("not asked for %.0f s", max(1, n.BackOff))
		}
		r, s := n.Received, n.Sent
		t.Add(n.Host, terminal.Bytes(int64(r.Bytes)), terminal.Count(r.Records), terminal.Count(r.Refused), terminal.Count(r.Failed),
			terminal.Bytes(int64(s.Bytes)), terminal.Count(s.Records), backOff)
	}
	t.Write(w)
	if more := len(p.Nodes) - maxPeers; more > 0 {
		fmt.Fprintf(w, "  and %s; see: rankfs status --json\n", terminal.Plural(more, "other"))
	}
}

// maxHolders is how many nodes are shown, those with most batches.
const maxHolders = 16

func writeHolders(w io.Writer, all []control.Leases, now time.Time) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "\nleases")
	t := terminal.NewTable("  ", "HOST", " RANKS", " BATCHES", " OLDEST")
	for _, l := range all[:min(len(all), maxHolders)] {
		oldest := "-"
		if l.Since != nil {
			oldest = terminal.Span(max(0, now.Sub(*l.Since)))
		}
		t.Add(l.Host, terminal.Count(l.Ranks), terminal.Count(l.Batches), oldest)
	}
	t.Write(w)
	if more := len(all) - maxHolders; more > 0 {
		fmt.Fprintf(w, "  and %s; see: rankfs status --json\n", terminal.Plural(more, "other"))
	}
	fmt.Fprintln(w, "  a rank is a node's until it is opened on another; a batch is its reader's until\n"+
		"  the next line, its end, or 5 s of silence of its node; see: rankfs queue show")
}

func writeCounters(w io.Writer, c control.Counters) {
	rate := ""
	if c.FillSeconds > 0 {
		rate = fmt.Sprintf(" at %s/s", terminal.Bytes(int64(float64(c.FillBytes)/c.FillSeconds)))
	}
	fmt.Fprintln(w, "\nbatches, since the mount")
	terminal.Pairs(w, "  ",
		"opened", fmt.Sprintf("%s: %s ready, %s waited (%.1f s), %s",
			terminal.Count(c.Opens), terminal.Count(c.OpensReady), terminal.Count(c.OpensWaited), c.WaitSeconds, terminal.Plural(c.OpenErrors, "error")),
		"filled", fmt.Sprintf("%s: %s%s, %s ahead, %s",
			terminal.Count(c.Fills), terminal.Bytes(int64(c.FillBytes)), rate, terminal.Count(c.Prefetched), terminal.Plural(c.FillErrors, "error")),
		"slabs", fmt.Sprintf("%s evicted, %s recycled", terminal.Count(c.Evicted), terminal.Count(c.Recycled)),
		"now", fmt.Sprintf("%s, %s, %s", terminal.Plural(c.Readers, "reading rank"), terminal.Plural(c.Handles, "open file"), terminal.Plural(c.Views, "view")),
	)
}
