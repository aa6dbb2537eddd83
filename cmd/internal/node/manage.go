package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/control"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/trust"
)

// A reporter is told how far something has come.
type reporter func(control.Progress)

// Datasets lists what is registered.
func (n *Node) Datasets() []control.Dataset {
	all := []control.Dataset{}
	for _, d := range n.catalog.list() {
		all = append(all, n.describe(context.Background(), d))
	}
	return all
}

// Dataset describes one dataset.
func (n *Node) Dataset(name string) (control.Dataset, error) {
	d, err := n.catalog.get(name)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.describe(context.Background(), d), nil
}

// describe says of a dataset also what this node has to say.
func (n *Node) describe(ctx context.Context, d *dataset) control.Dataset {
	c := d.describe(ctx)
	if said := n.warnings(d.view, d.version); len(said) > 0 {
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
	options, err := viewOptions(r)
	if err != nil {
		return control.Dataset{}, err
	}
	release, err := n.catalog.claim(r.Name, false)
	if err != nil {
		return control.Dataset{}, err
	}
	defer release()
	return n.install(ctx, record{
		Name: r.Name, Source: r.Source, View: options, ByChunk: wantsChunks(r), Created: time.Now().UTC(),
	}, 0, progress)
}

// wantsChunks reports whether nobody needs to know where the records are.
func wantsChunks(r control.CreateRequest) bool {
	return r.Batch == "chunk" && cmp.Or(r.Order, "none") == "none"
}

// viewOptions checks a request and returns the options of its default view.
func viewOptions(r control.CreateRequest) (string, error) {
	if err := meta.CheckName(r.Name); err != nil {
		return "", err
	}
	v := meta.View{Dataset: r.Name, Ranks: 1}
	v, err := v.With(fmt.Sprintf("ranks=%d,batch=%s,order=%s,seed=%d,tail=%s", max(1, r.Ranks),
		cmp.Or(r.Batch, "256"), cmp.Or(r.Order, "none"), r.Seed, cmp.Or(r.Tail, "keep")))
	if err != nil {
		return "", err
	}
	_, options, _ := strings.Cut(v.String(), "@")
	return options, nil
}

// Refresh indexes the source again, as it is now.
func (n *Node) Refresh(ctx context.Context, q control.RefreshRequest, progress func(control.Progress)) (control.Dataset, error) {
	release, err := n.catalog.claim(q.Name, true)
	if err != nil {
		return control.Dataset{}, err
	}
	defer release()
	r, generation, err := n.catalog.registered(q.Name)
	if err != nil {
		return control.Dataset{}, err
	}
	r.ByChunk = r.ByChunk && !q.Records
	return n.install(ctx, r, generation, progress)
}

func (n *Node) install(ctx context.Context, r record, instead uint64, progress reporter) (control.Dataset, error) {
	start := time.Now()
	r.Origin = n.member.group.Self()
	d, err := n.catalog.install(ctx, r, instead, progress)
	if err != nil {
		return control.Dataset{}, err
	}
	n.everywhere(ctx, registered{r.Name, d.generation})
	described := n.describe(ctx, d)
	if crowd := described.Notes["memory"]; crowd != "" {
		n.config.Log.Warn("ranks that read together will not find room", "dataset", r.Name, "cause", crowd)
	}
	n.config.Log.Info("dataset indexed", "dataset", r.Name, "source", r.Source,
		"records", described.Records, "bytes", described.Bytes, "took", time.Since(start))
	return described, nil
}

// Remove forgets a dataset. Its source is not touched; batches of it that
// ranks have open stay readable.
func (n *Node) Remove(name string) error {
	release, err := n.catalog.claim(name, true)
	if err != nil {
		return err
	}
	defer release()
	return n.catalog.remove(context.Background(), name)
}

// verifyBytes is how much is read back at a time.
const verifyBytes = 8 << 20

// Verify reads every record back, in the source's order.
func (n *Node) Verify(ctx context.Context, name string, progress func(control.Progress)) (control.Verification, error) {
	d, err := n.catalog.get(name)
	if err != nil {
		return control.Verification{}, err
	}
	data, err := d.version.Source.Data(ctx)
	if err != nil {
		return control.Verification{}, fmt.Errorf("verify dataset %s: %w", name, err)
	}
	buf, err := unix.Mmap(-1, 0, verifyBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return control.Verification{}, fmt.Errorf("verify dataset %s: %w", name, err)
	}
	defer unix.Munmap(buf)
	hash, x := xxhash.New(), d.version.Index
	v := control.Verification{}
	var extents []index.Extent
	fill := 0
	flush := func() error {
		if err := data.Read(ctx, index.Merge(extents), buf[:fill]); err != nil {
			return fmt.Errorf("verify dataset %s: near record %d: %w", name, v.Records, err)
		}
		hash.Write(buf[:fill])
		v.Bytes += int64(fill)
		extents, fill = extents[:0], 0
		progress(control.Progress{Stage: "verifying", Bytes: v.Bytes, Total: x.Bytes(), Records: v.Records})
		return ctx.Err()
	}
	for i := range x.Records() {
		for e := x.Extent(i); ; {
			part := e
			part.Len = min(e.Len, int64(len(buf)-fill))
			extents, fill = append(extents, part), fill+int(part.Len)
			e.Off, e.Len = e.Off+part.Len, e.Len-part.Len
			if fill < len(buf) && len(extents) < recordsAtOnce {
				break
			}
			if err := flush(); err != nil {
				return v, err
			}
			if e.Len == 0 {
				break
			}
		}
		v.Records++
	}
	if err := flush(); err != nil {
		return v, err
	}
	v.Checksum = fmt.Sprintf("xxh64:%016x", hash.Sum64())
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
