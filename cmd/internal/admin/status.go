package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/meta/trust"
)

// Status is the state of the daemon.
func (n *status) Status() control.Status {
	all := n.all.Datasets() // first: it looks at their sources, and those that have changed are faults
	s := n.status()
	s.Datasets, s.Leases = all, n.all.leases()
	return s
}

// Files are the files below /.rankfs.
func (n *status) Files() []fs.File {
	status := fs.File{Name: "status.json", Content: func() []byte {
		text, err := json.MarshalIndent(n.status(), "", "  ")
		if err != nil {
			panic(err) // strings and numbers
		}
		return append(text, '\n')
	}}
	health := fs.File{Name: "health", Content: n.health.text}
	return append(n.tables(), status, health)
}

// status is the part of Status that costs nothing: it calls no source.
func (n *status) status() control.Status {
	on, reason := n.tree.Passthrough()
	tiers, counters := n.supply(n.report())
	s := control.Status{
		Version: n.Version, PID: unix.Getpid(), Mount: n.Mount,
		State: n.Dir, Socket: n.Socket, Since: n.Since,
		Passthrough: control.Passthrough{On: on, Reason: reason},
		Tiers:       tiers, Counters: counters,
	}
	if h := hdfsOf(n.HDFS.Stats()); h != (control.HDFS{}) {
		s.HDFS = &h
	}
	s.Peers = n.traffic()
	s.Pool = n.all.pool()
	s.Cluster = n.all.Cluster()
	s.Faults = n.health.note(n.faults(s.Cluster, tiers))
	for _, f := range s.Faults {
		s.Warnings = append(s.Warnings, f.What)
	}
	return s
}

// supply has the counters of the cache and the tree, and the waits of opens.
func (n *status) supply(r stall.Report) ([]control.Tier, control.Counters) {
	tiers, c := n.Kept.Stats()
	t, waits := n.tree.Stats(), r.All().Wait
	c.OpenErrors, c.BatchReads, c.Lookups, c.Views = t.Errors, t.BatchReads, t.Lookups, t.Views
	c.Readers = r.Reading()
	c.WaitSeconds, c.Waits, c.HDFSWaits = waits.Sum().Seconds(), waitsOf(waits), hdfsWaits(waits)
	return tiers, c
}

// report has the waits of jobs, those of a name that another dataset has now all together.
func (n *status) report() stall.Report { return n.Stalls.Report().Without(n.past) }

// past reports whether a job read a dataset whose name another has now.
func (n *status) past(j stall.Job) bool {
	dataset, _, _ := meta.SplitView(j.Name)
	d, err := n.Catalog.Get(dataset)
	return err == nil && d.Created.UnixNano() != j.Of
}

// faults are all things that are not as they should be.
func (n *status) faults(k control.Cluster, tiers []control.Tier) []fault {
	return append(n.ofCluster(k), n.ofDaemon(tiers)...)
}

// ofCluster has the faults that keep this node from agreeing with the others.
func (n *status) ofCluster(c control.Cluster) (all []fault) {
	switch {
	case c.Removed:
		all = append(all, fault{"removed", "", trust.ErrRemoved.Error()})
	case c.Leader == "":
		all = append(all, fault{"leader", "", n.all.leaderless()})
	}
	if !c.Removed && !meta.SameHost(n.Called, n.Host) {
		all = append(all, fault{"host", "", fmt.Sprintf("this host is called %s now, and the node was admitted as %s, by which plans and claims go on to know it: "+
			"mount it with --host %[2]s, or drain and remove it, and join again with an empty --state", n.Called, n.Host)})
	}
	if err := n.Group.Unwritten(); err != nil {
		all = append(all, fault{"log", "", "the cluster's log cannot be written on this node: " + meta.Plain(err)})
	}
	if err := n.State.Err(); err != nil {
		all = append(all, fault{"cluster", "", "this node does not follow the cluster: " + meta.Plain(err)})
	}
	return all
}

// ofDaemon has the other faults.
func (n *status) ofDaemon(tiers []control.Tier) (all []fault) {
	add := func(kind, of, format string, args ...any) {
		all = append(all, fault{kind, of, fmt.Sprintf(format, args...)})
	}
	for _, t := range tiers {
		if t.Name != control.TierNVMe {
			continue
		}
		if t.Damaged > 0 {
			add("damaged", t.Where, "%d slabs on nvme in %s did not match their checksum and were not served", t.Damaged, t.Where)
		}
		if t.Failed > 0 {
			add("disk", t.Where, "%d slabs on nvme in %s could not be read and were fetched again; look at its disk", t.Failed, t.Where)
		}
	}
	for _, authority := range n.Catalog.Authorities() {
		if err := n.HDFS.Outage(authority); err != nil {
			add("hdfs", authority, "no namenode of hdfs://%s/ answers, of which datasets are; what is in the cache is served: %v", authority, err)
		}
		if err := n.HDFS.NoTicket(authority); err != nil {
			add("kerberos", authority, "there is no ticket for hdfs://%s/, of which datasets are; what is in the cache is served: %v", authority, err)
		}
	}
	for _, w := range n.HDFS.Web() {
		add("hdfs", w.Authority, "no namenode of hdfs://%s/ answers by RPC: %s is asked instead, which takes a request for each file that is located", w.Authority, w.URL)
	}
	if err := n.HDFS.Addresses(); err != nil {
		add("addresses", "", "%v: replicas of HDFS are local only if their host is called %s; allow AF_NETLINK to the daemon, or say the name with --host", err, n.Called)
	}
	if on, reason := n.tree.Passthrough(); !on {
		add("passthrough", "", "passthrough is off, every byte goes through the daemon: %s", reason)
	}
	if why := n.PoolRefusal(); why != "" {
		add("passthrough", "shuffle", "files of the shuffle pool go through the daemon, as the kernel takes none of their file system, which is so if that is stacked on others: %s", why)
	}
	all = append(all, n.all.datasets.faults()...)
	all = append(all, n.all.asideWarnings()...)
	all = append(all, n.all.shuffles.faults()...)
	if short := n.Views.Memory.ShortageNow(); short != "" {
		add("memory", "", "%s", short)
	}
	traces, pins := n.Kept.Lost()
	if pins != nil {
		add("pins", "", "%v", pins)
	}
	for _, w := range traces {
		add("traces", w, "%s", w)
	}
	for _, t := range tiers {
		if t.State != "ok" {
			add("tier", t.Name+" "+t.Where, "tier %s in %s: %s", t.Name, t.Where, t.State)
		}
	}
	return all
}

func hdfsOf(s hdfs.Stats) control.HDFS {
	return control.HDFS{Bytes: s.Bytes, Local: s.Local, Corrupt: s.Corrupt, Failures: s.Failures, Streams: s.Streams,
		Ways:        control.Ways[uint64]{Files: s.Files, LocalTCP: s.Local - s.Files, Remote: s.Bytes - s.Local},
		LocalBlocks: s.LocalBlocks}
}

// Look looks at what is wrong.
func (n *status) Look() {
	tiers, _ := n.Kept.Stats()
	n.health.note(n.faults(n.all.Cluster(), tiers))
}

// Watch looks until ctx is done.
func (n *status) Watch(ctx context.Context) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.Look()
		}
	}
}
