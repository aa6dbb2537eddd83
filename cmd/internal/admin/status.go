package admin

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"rankfs/cache"
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

// Status says how the daemon is.
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

// status is what costs nothing to tell: it asks no source.
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
	switch {
	case s.Cluster.Removed:
		s.Warnings = append(s.Warnings, trust.ErrRemoved.Error())
	case s.Cluster.Leader == "":
		s.Warnings = append(s.Warnings, n.all.leaderless())
	}
	if err := n.State.Err(); err != nil {
		s.Warnings = append(s.Warnings, "this node does not follow the cluster: "+err.Error())
	}
	for _, d := range c.NVMe {
		if d.Damaged > 0 {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%d slabs on nvme in %s did not match their checksum and were not served", d.Damaged, d.Path))
		}
		if d.Failed > 0 {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%d slabs on nvme in %s could not be read and were fetched again; look at its disk", d.Failed, d.Path))
		}
	}
	for _, w := range n.HDFS.Web() {
		s.Warnings = append(s.Warnings, fmt.Sprintf("no namenode of %s answers by RPC: %s is asked instead, which takes a request for each file that is located", w.Authority, w.URL))
	}
	if err := n.HDFS.Addresses(); err != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%v: replicas of HDFS are local only if their host is called %s; allow AF_NETLINK to the daemon, or say the name with --host", err, n.Host))
	}
	if !on {
		s.Warnings = append(s.Warnings, "passthrough is off, every byte goes through the daemon: "+reason)
	}
	s.Warnings = append(s.Warnings, n.all.asideWarnings()...)
	if crowd := n.Views.Waiting(); crowd != "" {
		s.Warnings = append(s.Warnings, crowd)
	}
	if err := n.all.pins.warning(); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	s.Warnings = append(s.Warnings, n.all.learnt.warnings()...)
	for _, t := range s.Tiers {
		if t.State != "ok" {
			s.Warnings = append(s.Warnings, "tier "+t.Name+" in "+t.Where+": "+t.State)
		}
	}
	return s
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
