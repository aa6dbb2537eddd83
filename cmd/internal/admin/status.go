package admin

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
	"rankfs/meta/trust"
)

// A status says how the daemon is, and how it supplies jobs.
type status struct {
	*daemon
	all *Admin // whose other parts have something to warn of
}

// Status is the state of the daemon.
func (n *status) Status() control.Status {
	s := n.status()
	s.Datasets = n.all.Datasets()
	return s
}

// Files are those below /.rankfs.
func (n *status) Files() []fs.File {
	status := fs.File{Name: "status.json", Content: func() []byte {
		text, err := json.MarshalIndent(n.status(), "", "  ")
		if err != nil {
			panic(err) // strings and numbers
		}
		return append(text, '\n')
	}}
	return append(n.tables(), status)
}

// status is the part of Status that costs nothing: it calls no source.
func (n *status) status() control.Status {
	on, reason := n.tree.Passthrough()
	c := n.cache.Stats()
	s := control.Status{
		Version: n.Version, PID: unix.Getpid(), Mount: n.Mount,
		State: n.Dir, Socket: n.Socket, Since: n.Since,
		Passthrough: control.Passthrough{On: on, Reason: reason},
		Tiers:       n.tiers(c), Counters: n.counters(c, n.Stalls.Report()),
	}
	if h := hdfsOf(n.HDFS.Stats()); h != (control.HDFS{}) {
		s.HDFS = &h
	}
	s.Peers = n.traffic()
	s.Cluster = n.all.Cluster()
	s.Warnings = append(n.ofCluster(s.Cluster), n.ofDaemon(s, c.NVMe)...)
	return s
}

// ofCluster warns of what keeps this node from agreeing with the others.
func (n *status) ofCluster(c control.Cluster) (all []string) {
	switch {
	case c.Removed:
		all = append(all, trust.ErrRemoved.Error())
	case c.Leader == "":
		all = append(all, n.all.leaderless())
	}
	if err := n.State.Err(); err != nil {
		all = append(all, "this node does not follow the cluster: "+err.Error())
	}
	return all
}

// ofDaemon warns of what else is not as it should be.
func (n *status) ofDaemon(s control.Status, nvme []disks.Stats) (all []string) {
	for _, d := range nvme {
		if d.Damaged > 0 {
			all = append(all, fmt.Sprintf("%d slabs on nvme in %s did not match their checksum and were not served", d.Damaged, d.Path))
		}
		if d.Failed > 0 {
			all = append(all, fmt.Sprintf("%d slabs on nvme in %s could not be read and were fetched again; look at its disk", d.Failed, d.Path))
		}
	}
	for _, w := range n.HDFS.Web() {
		all = append(all, fmt.Sprintf("no namenode of %s answers by RPC: %s is asked instead, which takes a request for each file that is located", w.Authority, w.URL))
	}
	if err := n.HDFS.Addresses(); err != nil {
		all = append(all, fmt.Sprintf("%v: replicas of HDFS are local only if their host is called %s; allow AF_NETLINK to the daemon, or say the name with --host", err, n.Host))
	}
	if p := s.Passthrough; !p.On {
		all = append(all, "passthrough is off, every byte goes through the daemon: "+p.Reason)
	}
	all = append(all, n.all.asideWarnings()...)
	if short := n.Views.ShortageNow(); short != "" {
		all = append(all, short)
	}
	if err := n.all.pins.warning(); err != nil {
		all = append(all, err.Error())
	}
	all = append(all, n.all.learnt.warnings()...)
	for _, t := range s.Tiers {
		if t.State != "ok" {
			all = append(all, "tier "+t.Name+" in "+t.Where+": "+t.State)
		}
	}
	return all
}

func hdfsOf(s hdfs.Stats) control.HDFS {
	return control.HDFS{Bytes: s.Bytes, Local: s.Local, Corrupt: s.Corrupt, Failures: s.Failures, Streams: s.Streams,
		Ways:        control.Ways[uint64]{Files: s.Files, LocalTCP: s.Local - s.Files, Remote: s.Bytes - s.Local},
		LocalBlocks: s.LocalBlocks}
}

// counters are those of the cache, of the tree and of the account of waits.
func (n *status) counters(c cache.Stats, r stall.Report) control.Counters {
	t, waits := n.tree.Stats(), r.All().Wait
	return control.Counters{
		Opens: c.Opens, OpensReady: c.OpensReady, OpensWaited: c.OpensWaited, OpenErrors: t.Errors,
		WaitSeconds: waits.Sum().Seconds(), Waits: waitsOf(waits), HDFSWaits: hdfsWaits(waits), BatchReads: t.BatchReads, Lookups: t.Lookups,
		Fills: c.Fills, FillBytes: c.FillBytes, FillSeconds: c.FillTime.Seconds(), FillErrors: c.FillErrors,
		Plans: c.Plans, PlanSeconds: c.PlanTime.Seconds(),
		Prefetched: c.Prefetched, Restored: c.Restored, Evicted: c.Evicted, Recycled: c.Recycled,
		Readers: c.Readers, OpenHandles: c.Handles, Views: t.Views,
	}
}
