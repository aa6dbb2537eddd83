package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// epoch is when the fake daemon was started, by its own account.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A fakeNode answers as a daemon would, from nothing. What a dataset is
// called decides how work on it goes.
type fakeNode struct {
	config node.Config
	socket string

	mu struct {
		sync.Mutex
		sets        []control.Dataset
		dropped     bool            // tokens
		drained     map[string]bool // by host: what was asked for
		removed     map[string]bool
		leaving     int // how often node4 has maps yet
		settled     bool
		resets      uint64 // of the queue of train
		queuePolicy string
		loads       int    // how often was asked
		policy      string // of the cache; empty: as mounted
		stays       map[string]string
		pool        []string // jobs that were made
	}
}

func newFake(c node.Config, socket string) *fakeNode {
	n := &fakeNode{config: c, socket: socket}
	n.mu.stays = make(map[string]string)
	n.mu.drained, n.mu.removed, n.mu.leaving = make(map[string]bool), make(map[string]bool), 3
	return n
}

// serveFake is node.Run without a file system. What the mount point is called
// decides how it goes; one called fuse is mounted indeed.
func serveFake(ctx context.Context, c node.Config, ready func()) error {
	switch filepath.Base(c.Mount) {
	case "refused":
		return failure.Hint(fmt.Errorf("open state %s: %w", c.State, meta.ErrBusy), "another daemon uses it")
	case "dies":
		os.Exit(9)
	}
	r, err := mounts.Register(c.RunDir, c.Mount, c.State)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if filepath.Base(c.Mount) == "fuse" {
		unmounted, err := mountEmpty(c.Mount)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Unmount(c.Mount, unix.MNT_DETACH); <-unmounted }()
		go func() { <-unmounted; cancel() }()
	}
	c.Log.Debug("fake daemon", "config", fmt.Sprintf("%+v", c))
	ready()
	return control.Serve(ctx, r.Listener, newFake(c, r.Socket), control.Admin{Group: c.Admins}, c.Log)
}

func (n *fakeNode) Status() control.Status {
	c := n.config
	s := control.Status{
		Version: "v0.1", PID: 4242, Mount: c.Mount, State: c.State, Socket: n.socket, Since: epoch,
		Passthrough: control.Passthrough{On: !c.NoPassthrough},
		Tiers: []control.Tier{
			{Name: "ram", Where: "tmpfs, huge pages", Budget: c.RAMBytes, Used: 3 << 28, Dying: 1 << 20, Slabs: 12, State: "ok"},
		},
		Counters: control.Counters{
			CacheCounts: control.CacheCounts{
				Opens: 12345, OpensReady: 12300, OpensWaited: 45, Fills: 400, FillBytes: 100 << 30, Prefetched: 355, Evicted: 388, Handles: 9,
			},
			WaitSeconds: 1.25, FillSeconds: 20, FillCost: control.Cost{Rate: 5 << 30, Bytes: 256 << 20}, Recycled: 380, Readers: 8, Views: 1,
		},
		HDFS: &control.HDFS{Bytes: 3 << 30, Local: 2 << 30, Corrupt: 1, Failures: 4, Streams: 2, LocalBlocks: "short-circuit",
			Ways: control.Ways[uint64]{Files: 1 << 30, LocalTCP: 1 << 30, Remote: 1 << 30}},
		Cluster:  n.Cluster(),
		Datasets: n.Datasets(),
	}
	if len(s.Cluster.Nodes) > 1 {
		s.Peers, s.Leases = fakePeers(), fakeLeases()
	}
	if s.Cluster.Leader == "" {
		s.Faults = append(s.Faults, fault("leader", "the cluster has no leader: what is planned is served, but nothing new can be registered or planned until a majority of its voters is up"))
	}
	s.Pool = n.fakePool()
	for _, disk := range c.NVMe {
		s.Tiers = append(s.Tiers, control.Tier{Name: "nvme", Where: disk.Path, Budget: disk.Bytes, State: "full"})
	}
	if c.NoPassthrough {
		s.Passthrough.Reason = "the kernel is 6.1 and passthrough needs 6.9 or later; boot a newer kernel to read batches at the speed of local files"
		s.Counters.BatchReads = 77
		s.Faults = []control.Fault{fault("tier", "the directory of the nvme tier is full: batches stay in memory only")}
	}
	return s
}

func fault(kind, what string) control.Fault {
	return control.Fault{Since: epoch.Add(2 * time.Hour), Kind: kind, What: what}
}

func (n *fakeNode) Datasets() []control.Dataset {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]control.Dataset{}, n.mu.sets...)
}

func (n *fakeNode) find(name string) (control.Dataset, error) {
	for _, d := range n.Datasets() {
		if d.Name == name {
			return d, nil
		}
	}
	return control.Dataset{}, fmt.Errorf("dataset %s: %w", name, meta.ErrNotExist)
}

func (n *fakeNode) Dataset(name string) (control.Dataset, error) { return n.find(name) }

// viewNamed is how the fake names a view, of which it knows no more.
func viewNamed(view string) control.ViewName {
	dataset, options, _ := meta.SplitView(view)
	return control.NameOf(view, dataset+"@"+cmp.Or(options, "epoch=0")+",ranks=8")
}

func (n *fakeNode) Explain(_ context.Context, r control.ExplainRequest) (control.Explanation, error) {
	name, _, _ := meta.SplitView(r.Name)
	d, err := n.find(name)
	return control.Explanation{ViewName: viewNamed(r.Name), Ranks: d.Ranks, Steps: d.Steps}, err
}

func (n *fakeNode) Create(ctx context.Context, r control.CreateRequest, progress func(control.Progress)) (control.Dataset, error) {
	if _, err := n.find(r.Name); err == nil {
		return control.Dataset{}, fmt.Errorf("create %s: %w", r.Name, meta.ErrExist)
	}
	d := control.Dataset{
		Name: r.Name, Source: r.Source, State: "ready", Version: "txn 41, 781 MiB, 2026-02-28",
		Records: 200_000, Bytes: 200_000 * 4096, Chunks: 13, Ranks: r.Ranks, Batch: r.Batch, Steps: 782,
		Order: r.Order, Seed: r.Seed, Tail: r.Tail, Created: epoch, IndexBytes: 3_200_000,
	}
	switch r.Name {
	case "hostile":
		return d, fmt.Errorf("create hostile: page 7 of %s %w: it points outside of the file", r.Source, meta.ErrCorrupt)
	case "moving":
		return d, fmt.Errorf("create moving: %s: %w: it grew while it was read", r.Source, meta.ErrStale)
	case "endless": // until the command is stopped
		progress(control.Progress{Doing: "indexing"})
		fmt.Fprintln(os.Stderr, "endless has begun")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "endless has ended")
		return d, ctx.Err()
	case "old":
		d.State, d.Reason = "stale", "the source was written to at 12:07, after it was indexed; index it again with: rankfs dataset refresh old"
	case "notes":
		d.Notes = map[string]string{"remainder": "12 bytes at the end are no record"}
	}
	work(progress, "indexing", d.Bytes)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.sets = append(n.mu.sets, d)
	return d, nil
}

func work(progress func(control.Progress), stage string, total int64) {
	for i := range int64(101) {
		progress(control.Progress{Doing: stage, Bytes: total * i / 100, Total: total})
	}
}

func (n *fakeNode) Refresh(_ context.Context, r control.RefreshRequest, progress func(control.Progress)) (control.Dataset, error) {
	d, err := n.find(r.Name)
	if err == nil {
		work(progress, "indexing", d.Bytes)
	}
	d.State, d.Reason = "ready", ""
	return d, err
}

func (n *fakeNode) Verify(_ context.Context, name string, progress func(control.Progress)) (control.Verification, error) {
	d, err := n.find(name)
	switch {
	case err != nil:
		return control.Verification{}, err
	case d.State == "stale":
		return control.Verification{}, fmt.Errorf("verify %s: %w", name, meta.ErrStale)
	}
	work(progress, "verifying", d.Bytes)
	return control.Verification{Records: d.Records, Bytes: d.Bytes, Checksum: "xxh64:0123456789abcdef"}, nil
}

func (n *fakeNode) Remove(name string) error {
	if _, err := n.find(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, "busy") {
		return fmt.Errorf("remove %s: %w: 3 batches are open", name, meta.ErrBusy)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.sets = slices.DeleteFunc(n.mu.sets, func(d control.Dataset) bool { return d.Name == name })
	return nil
}

// mountEmpty mounts an empty directory by the FUSE protocol itself, and closes
// the channel when it is unmounted. It is as much of a file system as umount
// has to do with.
func mountEmpty(dir string) (<-chan struct{}, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())
	if err := unix.Mount("none", dir, mountinfo.FSType, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, options); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	unmounted := make(chan struct{})
	go func() {
		defer close(unmounted)
		defer unix.Close(fd)
		buf := make([]byte, 1<<18)
		for {
			n, err := unix.Read(fd, buf)
			switch {
			case errors.Is(err, unix.ENODEV):
				return
			case err == nil && n >= 40:
				if answer := answerFUSE(buf[:n]); answer != nil {
					_, _ = unix.Write(fd, answer)
				}
			}
		}
	}()
	return unmounted, nil
}

// answerFUSE answers one request: a header of length, error and unique id,
// then what struct fuse_*_out of the kernel's <linux/fuse.h> says.
func answerFUSE(request []byte) []byte {
	le := binary.LittleEndian
	reply := func(errno int32, body []byte) []byte {
		out := le.AppendUint32(nil, uint32(16+len(body)))
		out = le.AppendUint32(out, uint32(-errno))
		return append(append(out, request[8:16]...), body...)
	}
	switch le.Uint32(request[4:]) {
	case 2, 36, 38, 42: // FORGET, INTERRUPT, DESTROY, BATCH_FORGET
		return nil
	case 3: // GETATTR: a directory, number 1, two links
		body := make([]byte, 104)
		le.PutUint64(body[16:], 1)
		le.PutUint32(body[16+60:], unix.S_IFDIR|0o755)
		le.PutUint32(body[16+64:], 2)
		return reply(0, body)
	case 17: // STATFS
		return reply(0, make([]byte, 80))
	case 26: // INIT: protocol 7.31, writes of a page
		body := make([]byte, 64)
		le.PutUint32(body[0:], 7)
		le.PutUint32(body[4:], 31)
		le.PutUint32(body[20:], 4096)
		le.PutUint32(body[24:], 1)
		return reply(0, body)
	case 27: // OPENDIR
		return reply(0, make([]byte, 16))
	case 29: // RELEASEDIR
		return reply(0, nil)
	}
	return reply(int32(unix.ENOSYS), nil)
}
