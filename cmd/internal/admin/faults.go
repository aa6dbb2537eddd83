package admin

import (
	"fmt"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/meta"
	"rankfs/meta/trust"
)

// passing says whether the kernel serves reads without the daemon, or why not.
type passing interface {
	Passthrough() (on bool, reason string)
}

// faults asks each part of the daemon what is not as it should be.
type faults struct {
	host, called string                         // what the cluster knows this host as, and what it is called now
	log          interface{ Unwritten() error } // of the cluster
	state        interface{ Err() error }
	catalog      interface{ Authorities() []string }
	hdfs         *hdfs.Clusters
	tree         passing // set by Start
	poolRefusal  func() string
	kept         interface {
		Lost() (traces []string, pins error)
	}
	memory   interface{ ShortageNow() string }
	members  *membership
	datasets *datasets
	queues   *queues
	shuffles *shuffles
}

// find has all things that are not as they should be.
func (n *faults) find(k control.Cluster, tiers []control.Tier) []fault {
	return append(n.ofCluster(k), n.ofDaemon(tiers)...)
}

// ofCluster has the faults that keep this node from agreeing with the others.
func (n *faults) ofCluster(c control.Cluster) (all []fault) {
	switch {
	case c.Removed:
		all = append(all, fault{"removed", "", trust.ErrRemoved.Error()})
	case c.Leader == "":
		all = append(all, fault{"leader", "", n.members.leaderless()})
	}
	if !c.Removed && !meta.SameHost(n.called, n.host) {
		all = append(all, fault{"host", "", fmt.Sprintf("this host is called %s now, and the node was admitted as %s, by which plans and claims go on to know it: "+
			"mount it with --host %[2]s, or drain and remove it, and join again with an empty --state", n.called, n.host)})
	}
	if err := n.log.Unwritten(); err != nil {
		all = append(all, fault{"log", "", "the cluster's log cannot be written on this node: " + meta.Plain(err)})
	}
	if err := n.state.Err(); err != nil {
		all = append(all, fault{"cluster", "", "this node does not follow the cluster: " + meta.Plain(err)})
	}
	return all
}

// ofDaemon has the other faults.
func (n *faults) ofDaemon(tiers []control.Tier) (all []fault) {
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
	for _, authority := range n.catalog.Authorities() {
		if err := n.hdfs.Outage(authority); err != nil {
			add("hdfs", authority, "no namenode of hdfs://%s/ answers, of which datasets are; what is in the cache is served: %v", authority, err)
		}
		if err := n.hdfs.NoTicket(authority); err != nil {
			add("kerberos", authority, "there is no ticket for hdfs://%s/, of which datasets are; what is in the cache is served: %v", authority, err)
		}
	}
	for _, w := range n.hdfs.Web() {
		add("hdfs", w.Authority, "no namenode of hdfs://%s/ answers by RPC: %s is asked instead, which takes a request for each file that is located", w.Authority, w.URL)
	}
	if err := n.hdfs.Addresses(); err != nil {
		add("addresses", "", "%v: replicas of HDFS are local only if their host is called %s; allow AF_NETLINK to the daemon, or say the name with --host", err, n.called)
	}
	if on, reason := n.tree.Passthrough(); !on {
		add("passthrough", "", "passthrough is off, every byte goes through the daemon: %s", reason)
	}
	if why := n.poolRefusal(); why != "" {
		add("passthrough", "shuffle", "files of the shuffle pool go through the daemon, as the kernel takes none of their file system, which is so if that is stacked on others: %s", why)
	}
	all = append(all, n.datasets.faults()...)
	all = append(all, n.queues.asideWarnings()...)
	all = append(all, n.shuffles.faults()...)
	if short := n.memory.ShortageNow(); short != "" {
		add("memory", "", "%s", short)
	}
	traces, pins := n.kept.Lost()
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
