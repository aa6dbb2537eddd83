package namenode_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// on returns a client that a real cluster's namenodes see on a host.
func on(t testing.TB, c *cluster.Cluster, h *cluster.Host, change func(*namenode.Config)) *namenode.Client {
	t.Helper()
	config, err := namenode.FromConf(c.Conf(), c.Nameservice())
	if err != nil {
		t.Fatal(err)
	}
	config.Dial, config.User = h.DialContext, "root"
	config.Timeout = 2 * time.Minute // for a namenode whose first call by a way it is
	if change != nil {
		change(&config)
	}
	names, err := namenode.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { names.Close() })
	return names
}

// ways are clients that a real cluster's namenodes see on a host: one that asks
// by RPC, and one that cannot.
func ways(t testing.TB, c *cluster.Cluster, h *cluster.Host, change func(*namenode.Config)) map[string]*namenode.Client {
	t.Helper()
	return map[string]*namenode.Client{
		"RPC": on(t, c, h, change),
		"WebHDFS": on(t, c, h, func(c *namenode.Config) {
			for i := range c.Addresses {
				c.Addresses[i] = "127.0.0.1:1"
			}
			if change != nil {
				change(c)
			}
		}),
	}
}

// write makes a file with blocks of 1 MiB from a host, by a client that is
// closed when the test ends.
func write(t testing.TB, h *cluster.Host, name string, size int) *hdfs.FileWriter {
	t.Helper()
	c, err := h.HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	f, err := c.CreateFile(name, 2, 1<<20, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return f
}

// finish closes a file, as soon as its last block is where it belongs.
func finish(t testing.TB, f *hdfs.FileWriter) {
	t.Helper()
	eventually.Done(t, 2*time.Minute, "the file is closed", func() error {
		err := f.Close()
		if err != nil && !strings.Contains(err.Error(), "replication in progress") {
			t.Fatal(err)
		}
		return err
	})
}

// checked is where the blocks of a path are, by Hadoop's own account.
func checked(t *testing.T, c *cluster.Cluster, name string) map[uint64][]string {
	t.Helper()
	said, err := c.Check(t.Context(), name, "files", "blocks", "locations")
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint64][]string{}
	for line := range strings.Lines(said) {
		m := regexp.MustCompile(`:blk_(\d+)_\d+ len=`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`DatanodeInfoWithStorage\[([^,]+),`).FindAllStringSubmatch(line, -1) {
			at[id] = append(at[id], m[1])
		}
		slices.Sort(at[id])
	}
	return at
}

func places(b *namenode.Blocks) map[uint64][]string {
	at := map[uint64][]string{}
	for _, b := range b.Blocks {
		for _, r := range b.Replicas {
			at[b.ID] = append(at[b.ID], r.Addr)
		}
		slices.Sort(at[b.ID])
	}
	return at
}

func TestRealLocations(t *testing.T) {
	c := cluster.Shared(t)
	dir, near := c.Dir(t), c.DataNodes()[1]
	name := path.Join(dir, "file")
	finish(t, write(t, near, name, 5<<20+7))
	want := checked(t, c, name)
	for way, names := range ways(t, c, near, nil) {
		t.Run(way, func(t *testing.T) {
			got, err := names.Locate(t.Context(), name, 0, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			if got.Size != 5<<20+7 || got.Open || len(got.Blocks) != 6 {
				t.Errorf("got %+v", got)
			}
			if !maps.EqualFunc(places(got), want, slices.Equal) {
				t.Errorf("blocks at %v, fsck says %v", places(got), want)
			}
			for _, b := range got.Blocks {
				if r := b.Replicas[0]; len(b.Replicas) != 2 || r.Host != near.Name {
					t.Errorf("block at %d: replicas %+v; the first should be on %s", b.Off, b.Replicas, near.Name)
				}
			}
			err = names.List(t.Context(), dir, true, func(st namenode.Status) error {
				if st.Name != "file" || !maps.EqualFunc(places(st.Blocks), want, slices.Equal) {
					t.Errorf("listed %+v with blocks at %v", st, places(st.Blocks))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRealHostnames(t *testing.T) {
	c := cluster.Shared(t)
	name := path.Join(c.Dir(t), "file")
	finish(t, write(t, c.DataNodes()[0], name, 1))
	names := on(t, c, c.DataNodes()[0], func(c *namenode.Config) { c.Data.UseHostname = true })
	got, err := names.Locate(t.Context(), name, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Blocks[0].Replicas[0]; r.Addr != c.Host(r.Host).Name+":9866" {
		t.Errorf("got %+v", r)
	}
}

// A file that is being written is as long as its finished blocks.
func TestRealOpenFile(t *testing.T) {
	c := cluster.Shared(t)
	name := path.Join(c.Dir(t), "file")
	f := write(t, c.DataNodes()[0], name, 1<<20+5)
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	both := ways(t, c, c.DataNodes()[0], nil)
	look := func(names *namenode.Client) *namenode.Blocks {
		t.Helper()
		got, err := names.Locate(t.Context(), name, 0, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		err = names.List(t.Context(), name, true, func(st namenode.Status) error {
			if st.Name != "" || st.Blocks.Size != got.Size || st.Blocks.Open != got.Open {
				t.Errorf("listed %+v, located %+v", st.Blocks, got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for way, names := range both {
		if got := look(names); !got.Open || got.Size != 1<<20 || len(got.Blocks) != 1 {
			t.Errorf("by %s, while it is written: %+v", way, got)
		}
	}
	finish(t, f)
	for way, names := range both {
		if got := look(names); got.Open || got.Size != 1<<20+5 || len(got.Blocks) != 2 {
			t.Errorf("by %s, when it is finished: %+v", way, got)
		}
	}
}

func TestRealErasureCode(t *testing.T) {
	const code = "XOR-2-1-1024k"
	c := cluster.Shared(t)
	dir, h := c.Dir(t), c.Hosts()[0]
	if err := c.SetCode(t.Context(), dir, code); err != nil {
		t.Fatal(err)
	}
	if err := c.PutByWeb(t.Context(), dir+"/file", make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	for way, names := range ways(t, c, h, nil) {
		t.Run(way, func(t *testing.T) {
			st, err := names.Stat(t.Context(), dir+"/file")
			if err != nil || st.ErasureCode != code || st.Size != 3<<20 {
				t.Errorf("got %+v, %v", st, err)
			}
			if st, err := names.Stat(t.Context(), dir); err != nil || st.ErasureCode != code {
				t.Errorf("directory: %+v, %v", st, err)
			}
			got, err := names.Locate(t.Context(), dir+"/file", 0, math.MaxInt64)
			if err != nil || len(got.Blocks) != 1 || got.Blocks[0].Size != 3<<20 || len(got.Blocks[0].Replicas) != 3 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestRealPermission(t *testing.T) {
	c := cluster.Shared(t)
	root, err := c.Hosts()[0].HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dir := path.Join(c.Dir(t), "private")
	if err := root.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, names := range ways(t, c, c.Hosts()[0], func(c *namenode.Config) { c.User = "alice" }) {
		err = names.List(t.Context(), dir, false, func(namenode.Status) error { return nil })
		holds(t, err, []string{`getListing "` + dir + `": permission denied for user "alice"`, "setfacl -m user:alice"}, []error{syscall.EACCES})
	}
}

// many makes empty files with names of one length.
func many(t testing.TB, c *cluster.Cluster, dir string, n int) {
	var wg sync.WaitGroup
	const writers = 8
	for w := range writers {
		wg.Go(func() {
			client, err := c.Hosts()[0].HDFS("root")
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			for i := w; i < n; i += writers {
				if err := client.CreateEmptyFile(fmt.Sprintf("%s/file-%06d", dir, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// More files than the namenode tells of at once.
func TestRealListing(t *testing.T) {
	const n = 2500
	c := cluster.Shared(t)
	dir := c.Dir(t)
	many(t, c, dir, n)
	for way, names := range ways(t, c, c.Hosts()[0], nil) {
		i := 0
		err := names.List(t.Context(), dir, true, func(st namenode.Status) error {
			if want := fmt.Sprintf("file-%06d", i); st.Name != want || st.Blocks == nil {
				return fmt.Errorf("entry %d is %+v", i, st)
			}
			i++
			return nil
		})
		if err != nil || i != n {
			t.Errorf("by %s: %d of %d files, %v", way, i, n, err)
		}
	}
}

// Calls go on while the other namenode takes over, and while the one that is
// not active hangs.
func TestRealFailOver(t *testing.T) {
	c := cluster.Exclusive(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for way, names := range ways(t, c, c.Hosts()[0], nil) {
		if _, err := names.Stat(ctx, "/"); err != nil {
			t.Fatalf("by %s: %v", way, err)
		}
		for range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					_, err := names.Stat(ctx, "/")
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Errorf("call %d by %s: %v", n, way, err)
						return
					}
					time.Sleep(10 * time.Millisecond) // or the namenodes have no processor
				}
			})
		}
	}
	for range 2 {
		if err := c.FailOver(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
}

func TestRealHang(t *testing.T) {
	c := cluster.Exclusive(t)
	active, err := c.Active(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes := c.NameNodes()
	i := slices.IndexFunc(nodes, func(h *cluster.Host) bool { return h.Name != active.Name })
	if err := nodes[i].Stop(cluster.NameNode); err != nil {
		t.Fatal(err)
	}
	names := on(t, c, c.Hosts()[0], func(c *namenode.Config) {
		c.Addresses = []string{nodes[i].Name + ":8020", active.Name + ":8020"}
		c.Timeout = 40 * time.Second
	})
	for range 3 {
		if _, err := names.Stat(t.Context(), "/"); err != nil {
			t.Error(err)
		}
	}
}
