package batch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/shuffle/plan"
)

// A Version is one version of a registered dataset, which all its views share. It
// knows its records by the index, which is there even if the source is not. It may be
// used concurrently.
//
// Views of a dataset that was removed or refreshed may live on in the kernel for a
// while, and look things up in its index. So index and source are closed by Close, or
// when nothing refers to the version any more, and not before. Code that uses a part
// of a version therefore keeps a pointer to the Version.
type Version struct {
	Index  *index.Index
	ID     peers.ID      // the hash of the index
	Plans  *plan.Version // shared by the plans of all views
	Source Source
	Flows  *stall.Flows // counts of its bytes that came to this node

	readers atomic.Pointer[plan.Plan]
	names   hostNames
	heard   heard
}

// Open opens the version whose index is at path.
func Open(path string, c Config) (*Version, error) {
	x, err := index.Open(path)
	if err != nil {
		return nil, err
	}
	v := &Version{Index: x, Flows: stall.NewFlows(time.Now)}
	if _, err := hex.Decode(v.ID[:], []byte(c.Hash)); err != nil {
		return nil, errors.Join(fmt.Errorf("hash of index %q %w", c.Hash, meta.ErrCorrupt), x.Close())
	}
	v.Source = newSource(x, v.ID, c)
	v.Plans = plan.NewVersion(x, v.ID)
	runtime.AddCleanup(v, func(s *OpenSource) { s.Close() }, v.Source.opened)
	return v, nil
}

// Opened is what has to be closed of the version, and does not keep that in memory.
func (v *Version) Opened() *OpenSource { return v.Source.opened }

// ReadBy notes the plan by which ranks read the chunks now. A chunk that is fetched
// ahead for this plan serves the batches of other nodes too.
func (v *Version) ReadBy(p *plan.Plan) { v.readers.Store(p) }

// Readers is the plan that ReadBy named last, nil if none was.
func (v *Version) Readers() *plan.Plan { return v.readers.Load() }

// Hosts are the hosts that hold a chunk: as the source last heard, if it is attached,
// else as the index has them.
func (v *Version) Hosts(chunk int) []string {
	if d := v.Source.Attached(); d != nil {
		return d.Hosts(chunk)
	}
	return v.Index.Chunk(chunk).Hosts
}

// heard are the different hosts of all chunks, as they were at a time. The lock is held
// while they are looked for, so that programs that ask at once look once.
type heard struct {
	sync.Mutex
	at    time.Time
	hosts []string
}

// heardTime is for how long hosts that were looked for in all chunks are taken for all:
// programs ask for many names one after the other, and replicas move slowly.
const heardTime = time.Second

// HostsCalled are the hosts of all chunks that have one of these names, in order.
func (v *Version) HostsCalled(names ...string) (found []string) {
	for _, h := range v.allHosts() {
		if slices.ContainsFunc(names, func(name string) bool { return meta.SameHost(h, name) }) {
			found = append(found, h)
		}
	}
	return found
}

func (v *Version) allHosts() []string {
	v.heard.Lock()
	defer v.heard.Unlock()
	if !v.heard.at.IsZero() && time.Since(v.heard.at) < heardTime {
		return v.heard.hosts
	}
	all := make(map[string]bool)
	for chunk := range v.Index.Chunks() {
		for _, h := range v.Hosts(chunk) {
			all[h] = true
		}
	}
	v.heard.hosts, v.heard.at = slices.Sorted(maps.Keys(all)), time.Now()
	return v.heard.hosts
}

// hostNames are bounds of the host names in an index, for the widths of table columns.
type hostNames struct {
	once          sync.Once
	longest, most int
}

// HostNames is the length of the longest name of a host in the index, and how many
// hosts a chunk has at most.
func (v *Version) HostNames() (longest, most int) {
	n := &v.names
	n.once.Do(func() {
		for i := range v.Index.Chunks() {
			hosts := v.Index.Chunk(i).Hosts
			n.most = max(n.most, len(hosts))
			for _, h := range hosts {
				n.longest = max(n.longest, len(h))
			}
		}
	})
	return n.longest, n.most
}

// FillChunk writes a whole chunk into dst, from the source.
func (v *Version) FillChunk(ctx context.Context, chunk int, dst []byte) error {
	stall.Of(ctx, v.Flows)
	data, err := v.Source.Data(ctx)
	if err != nil {
		return err
	}
	return readChunk(ctx, data, v.Index, chunk, dst)
}
