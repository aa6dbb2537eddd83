package admin

import (
	"cmp"
	"slices"

	"rankfs/cmd/internal/control"
	"rankfs/fs"
	"rankfs/meta/dispatch"
	"rankfs/meta/state"
)

// tables are the files below /.rankfs about the cluster, and about what readers did.
type tables struct {
	members  *membership
	shuffles *shuffles
	state    *state.Machine
	opened   func() []byte // what ranks have opened
}

func (n *tables) files() []fs.File {
	all := []fs.File{
		{Name: "nodes", Content: func() []byte { return nodesTable(n.members.Cluster()) }},
		{Name: "plans", Content: func() []byte { return plansTable(n.state) }},
		{Name: "queues", Content: func() []byte { return queuesTable(n.state) }},
		{Name: "leases", Content: func() []byte { return leasesTable(n.state) }},
		{Name: "trace", Content: n.opened},
	}
	if n.shuffles.pool != nil {
		all = append(all, fs.File{Name: "shuffle", Content: n.shuffles.shuffleTable})
	}
	return all
}

// nodesTable is that of rankfs node ls, for programs to read: a dash stands for
// what is not known.
func nodesTable(c control.Cluster) []byte {
	return columns(func(line func(...any)) {
		line("node", "host", "address", "state", "vote", "role", "lag", "since", "here", "called", "term")
		for _, m := range c.Nodes {
			vote, lag, here, term := "-", any("-"), "-", any("-")
			switch {
			case m.ID == c.Leader:
				vote = "leader"
			case m.Voter:
				vote = "voter"
			}
			if m.Lag != nil {
				lag = *m.Lag
			}
			if m.ID == c.Self {
				here, term = "here", c.Term
			}
			line(m.ID, m.Host, m.Addr, m.State, vote, cmp.Or(m.Role, "-"), lag, stamp(m.Entered.UnixNano()), here, cmp.Or(m.Called, "-"), term)
		}
	})
}

// plansTable is the views that are settled, the latest last.
func plansTable(m interface{ SettledPlans() []state.SettledPlan }) []byte {
	plans := m.SettledPlans()
	return columns(func(line func(...any)) {
		line("view", "ranks", "nodes", "settled")
		for _, p := range plans[max(0, len(plans)-maxLines):] {
			line(p.View, p.Nodes.Ranks(), nodesOf(p.Nodes), stamp(p.Settled))
		}
	})
}

// nodesOf counts the different nodes of ranks.
func nodesOf(r state.Runs) int {
	var ids []string
	for _, run := range r {
		ids = append(ids, run.Node)
	}
	slices.Sort(ids)
	return len(slices.Compact(ids))
}

// What a table of queues asks of the cluster's state.
type (
	asides interface {
		queued
		hosts
		Suspects(view string) []state.Suspect
	}
	leases interface {
		queued
		hosts
		Readers(view string) []state.Reader
	}
)

// queuesTable has the progress of each queue, the latest last, and below that what is
// set aside, if anything is.
func queuesTable(m asides) []byte {
	queues := latest(m)
	queues = queues[max(0, len(queues)-maxLines):]
	table := columns(func(line func(...any)) {
		line("view", "batches", "done", "leased", "set_aside", "readers", "policy", "run", "opened")
		for _, q := range queues {
			line(q.View, q.Units, q.Done, q.Held, q.Aside, q.Readers, q.Policy, q.Resets, stamp(q.Opened))
		}
	})
	if slices.ContainsFunc(queues, func(q state.Queue) bool { return q.Aside > 0 }) {
		table = append(append(table, '\n'), asideTable(m, queues)...)
	}
	return table
}

// asideTable is a line for each batch that was set aside.
func asideTable(m asides, queues []state.Queue) []byte {
	left := maxLines
	return columns(func(line func(...any)) {
		line("view", "batch", "returned", "last", "rank", "host", "cause")
		for _, q := range queues {
			if q.Aside == 0 {
				continue
			}
			for _, s := range m.Suspects(q.View) {
				if last := s.By[len(s.By)-1]; s.Aside() && left > 0 {
					line(q.View, dispatch.BatchOf(q.View, s.Unit), len(s.By), stamp(last.At), last.Rank, m.HostOf(last.Node), last.Cause)
					left--
				}
			}
		}
	})
}

// leasesTable is a line for each batch of a queue that a reader has, those of the latest
// queue last, and of each the oldest first.
func leasesTable(m leases) []byte {
	left := maxLines
	return columns(func(line func(...any)) {
		line("view", "batch", "rank", "host", "since")
		for _, q := range latest(m) {
			if q.Held == 0 {
				continue
			}
			for _, l := range leasesOf(m, q.View, m.Readers(q.View)) {
				if left--; left >= 0 {
					line(q.View, l.Batch, l.Rank, l.Host, stamp(l.Since.UnixNano()))
				}
			}
		}
	})
}
