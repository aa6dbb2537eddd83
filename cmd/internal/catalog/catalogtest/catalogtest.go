// Package catalogtest makes datasets of a cluster that is a state machine alone, for
// tests of what is served of them.
package catalogtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/cmd/internal/catalog"
	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A Cluster has no nodes that run. What it is told to do is agreed on at once.
type Cluster struct {
	t      testing.TB
	State  *state.Machine
	Owners *plan.Owners
	Asked  func(ctx context.Context, node, call string) error // answers for the others; nil: they do not
	Env    *fetch.Env                                         // of the catalog
	Drop   func(name string)                                  // is called where a daemon has names looked up again; may be nil
	dir    string                                             // of the catalog's indexes
	now    atomic.Int64                                       // time of the cluster
}

// New is a cluster of nodes 0 to n-1, each on the host of its letter. Chunks are fetched
// by the first of them alone, until Up.
func New(t testing.TB, n int) *Cluster { return Called(t, n, func(host string) string { return host }) }

// Called is New with other names of hosts.
func Called(t testing.TB, n int, name func(host string) string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, State: state.Speaking(state.Version), Owners: new(plan.Owners)}
	hash := strings.Repeat("a", 64)
	c.Apply(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}}, &state.Token{Hash: hash, Expires: 1 << 62, Uses: state.MaxUses})
	for i := range n {
		m := Node(i)
		m.Host = name(m.Host)
		c.Apply(&state.Admit{TokenHash: hash, Node: m})
	}
	c.Owners.Self = c.Self()
	c.Owners.Follow([]plan.Node{{ID: c.Self(), Host: c.State.HostOf(c.Self())}})
	return c
}

// Node is node i, on host a, b, c and so on.
func Node(i int) state.Node {
	host := string(rune('a' + i))
	return state.Node{ID: fmt.Sprintf("%016x", i+1), Host: host, Addr: host + ":1", Key: "key" + host}
}

// Up marks all nodes as up for the owners of chunks, except those on the hosts in but.
func (c *Cluster) Up(but ...string) {
	var all []plan.Node
	for _, n := range c.State.Nodes() {
		up := true
		for _, host := range but {
			up = up && n.Host != host
		}
		all = append(all, plan.Node{ID: n.ID, Host: n.Host, Up: up})
	}
	c.Owners.Follow(all)
}

// Self is the first node.
func (c *Cluster) Self() string { return Node(0).ID }

// Do agrees to a command.
func (c *Cluster) Do(_ context.Context, command state.Command) (state.Result, error) {
	state.Stamp(command, c.now.Add(1e9)) // a second after the one before
	data, err := state.Encode(command)
	if err != nil {
		return state.Result{}, err
	}
	return c.State.Apply(c.State.Summary().Applied+1, data)
}

// Ask is answered by Asked: no node runs.
func (c *Cluster) Ask(ctx context.Context, node, call string, _, _ any) error {
	if c.Asked == nil {
		return meta.ErrUnavailable
	}
	return c.Asked(ctx, node, call)
}

// Apply is Do for commands that are not refused.
func (c *Cluster) Apply(commands ...state.Command) {
	c.t.Helper()
	for _, command := range commands {
		if _, err := c.Do(context.Background(), command); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Index makes an index with a chunk for each list of hosts, which may be in racks. A chunk
// has so many records of 10 bytes.
func Index(t testing.TB, racks map[string]string, records uint64, chunks ...[]string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f := b.AddFile(index.File{Path: "f", Size: 1 << 40})
	for i, hosts := range chunks {
		b.BeginChunk(hosts...)
		b.AddStride(f, int64(i)*int64(records)*10, 10, records)
	}
	for host, rack := range racks {
		b.Rack(host, rack)
	}
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	return path
}

// Catalog is the catalog of one dataset, d, of a source whose index is moved into it. A dataset
// that was there is replaced.
func (c *Cluster) Catalog(source, options, index string) *catalog.Catalog {
	t := c.t
	t.Helper()
	c.dir, c.Env = t.TempDir(), &fetch.Env{HDFS: new(hdfs.Clusters)}
	c.Put(catalog.Registration{Name: "d", Source: source, View: options}, index)
	k, err := catalog.New(catalog.Config{
		Dir: c.dir, State: c.State, Cluster: c, Owners: c.Owners, Env: c.Env, Drop: c.drop, Registered: func(string, time.Time) {},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	if !k.Update(context.Background()) {
		t.Fatal("the dataset was not loaded")
	}
	return k
}

// Put registers a dataset, in the place of one of its name, and moves its index into the
// catalog. Its view is some options.
func (c *Cluster) Put(r catalog.Registration, index string) {
	t := c.t
	t.Helper()
	v, err := meta.View{Dataset: r.Name, Ranks: 1}.With(r.View)
	if err != nil {
		t.Fatal(err)
	}
	_, r.View, _ = meta.SplitView(v.String())
	registration, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(text))
	if err := os.Rename(index, filepath.Join(c.dir, hash)); err != nil {
		t.Fatal(err)
	}
	old, _ := c.State.Dataset(r.Name)
	c.Apply(&state.PutDataset{Name: r.Name, Registration: registration, Index: hash, Generation: old.Generation})
}

func (c *Cluster) drop(name string) {
	if c.Drop != nil {
		c.Drop(name)
	}
}
