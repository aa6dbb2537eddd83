package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/fs"
	"rankfs/meta/trust"
)

// Datasets lists what is registered.
func (n *Node) Datasets() []control.Dataset {
	all := []control.Dataset{}
	for _, d := range n.catalog.List() {
		all = append(all, n.describe(context.Background(), d))
	}
	return all
}

// Dataset describes one dataset.
func (n *Node) Dataset(name string) (control.Dataset, error) {
	d, err := n.catalog.Get(name)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.describe(context.Background(), d), nil
}

// describe says of a dataset also what this node has to say.
func (n *Node) describe(ctx context.Context, d *catalog.Dataset) control.Dataset {
	c := d.Describe(ctx)
	if said := n.warnings(d.Default, d.Version); len(said) > 0 {
		maps.Copy(said, c.Notes)
		c.Notes = said
	}
	return c
}

// Explain looks a view up as the mount does. There a name that stands for
// nothing is an errno.
func (n *Node) Explain(name string) (control.Explanation, error) {
	s, err := n.open(name)
	if err != nil {
		return control.Explanation{}, err
	}
	v := s.view.Load()
	x := v.Version.Index
	return control.Explanation{
		View: n.called(name), Full: v.View().String(), Ranks: v.Cut().Ranks, Steps: v.Cut().Steps(),
		Records: x.Records(), Bytes: x.Bytes(), Warning: cmp.Or(n.waiting(), n.crowd(v.View(), v.Version)),
	}, nil
}

// Create registers a dataset, indexing its source.
func (n *Node) Create(ctx context.Context, r control.CreateRequest, progress func(control.Progress)) (control.Dataset, error) {
	d, err := n.catalog.Create(ctx, r, progress)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.indexed(ctx, d), nil
}

// Refresh indexes the source of a dataset again, as it is now.
func (n *Node) Refresh(ctx context.Context, r control.RefreshRequest, progress func(control.Progress)) (control.Dataset, error) {
	d, err := n.catalog.Refresh(ctx, r, progress)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.indexed(ctx, d), nil
}

// indexed describes a dataset that was indexed just now, and has the log warn if its
// batches are too large for this node.
func (n *Node) indexed(ctx context.Context, d *catalog.Dataset) control.Dataset {
	c := n.describe(ctx, d)
	if crowd := c.Notes["memory"]; crowd != "" {
		n.config.Log.Warn("ranks that read together will not find room", "dataset", d.Name, "cause", crowd)
	}
	return c
}

// Remove forgets a dataset.
func (n *Node) Remove(name string) error { return n.catalog.Remove(context.Background(), name) }

// Verify reads every record of a dataset back.
func (n *Node) Verify(ctx context.Context, name string, progress func(control.Progress)) (control.Verification, error) {
	d, err := n.catalog.Get(name)
	if err != nil {
		return control.Verification{}, err
	}
	v, err := d.Verify(ctx, progress)
	if err != nil {
		return v, fmt.Errorf("verify dataset %s: %w", name, err)
	}
	return v, nil
}

// Status says how the daemon is.
func (n *Node) Status() control.Status {
	s := n.status()
	s.Datasets = n.Datasets()
	return s
}

// info are the files below /.rankfs.
func (n *Node) info() []fs.File {
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
func (n *Node) status() control.Status {
	on, reason := n.tree.Passthrough()
	c := n.cache.Stats()
	s := control.Status{
		Version: n.config.Version, PID: unix.Getpid(), Mount: n.config.Mount,
		State: n.config.State, Socket: n.socket, Since: n.since,
		Passthrough: control.Passthrough{On: on, Reason: reason},
		Tiers:       n.tiers(c), Counters: n.counters(c, n.stalls.Report()),
	}
	if h := hdfsOf(n.hdfs.Stats()); h != (control.HDFS{}) {
		s.HDFS = &h
	}
	s.Peers = n.member.traffic()
	s.Cluster = n.Cluster()
	switch {
	case s.Cluster.Removed:
		s.Warnings = append(s.Warnings, trust.ErrRemoved.Error())
	case s.Cluster.Leader == "":
		s.Warnings = append(s.Warnings, n.member.leaderless())
	}
	if err := n.member.machine.Err(); err != nil {
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
	for _, w := range n.hdfs.Web() {
		s.Warnings = append(s.Warnings, fmt.Sprintf("no namenode of %s answers by RPC: %s is asked instead, which takes a request for each file that is located", w.Authority, w.URL))
	}
	if err := n.hdfs.Addresses(); err != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%v: replicas of HDFS are local only if their host is called %s; allow AF_NETLINK to the daemon, or say the name with --host", err, n.member.host))
	}
	if !on {
		s.Warnings = append(s.Warnings, "passthrough is off, every byte goes through the daemon: "+reason)
	}
	s.Warnings = append(s.Warnings, n.asideWarnings()...)
	if crowd := n.waiting(); crowd != "" {
		s.Warnings = append(s.Warnings, crowd)
	}
	if err := n.stays.warning(); err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	s.Warnings = append(s.Warnings, n.learnt.warnings()...)
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
func (n *Node) counters(c cache.Stats, r stall.Report) control.Counters {
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
