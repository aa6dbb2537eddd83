package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/node"
	"rankfs/meta"
	"rankfs/test/eventually"
)

// A node alone is a cluster like any other, as the command sees it.
func TestClusterOfOne(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("one\ntwo\nthree\nfour\n"), 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	ctx := t.Context()
	var k control.Cluster
	var err error
	// The leader sees a daemon that has just begun as down, and then as up.
	eventually.True(t, "the node is up", func() bool {
		k, err = r.client.Cluster(ctx)
		return err != nil || k.Nodes[0].State == "up"
	})
	if err != nil || len(k.Nodes) != 1 || k.Leader != k.Self || k.Nodes[0].ID != k.Self || !k.Nodes[0].Voter || k.Nodes[0].State != "up" {
		t.Fatalf("cluster %+v, %v", k, err)
	}
	if k.Nodes[0].Lag != nil {
		t.Errorf("the leader is %d changes behind itself", *k.Nodes[0].Lag)
	}
	if got := r.shell("cat .rankfs/nodes"); !strings.Contains(got, k.Self) || strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, fmt.Sprintf(" %d\n", k.Term)) || k.Term == 0 {
		t.Errorf("nodes:\n%s", got)
	}
	if got := r.shell("cat .rankfs/plans .rankfs/queues"); strings.Count(got, "\n") != 2 || strings.Count(got, "view") != 2 {
		t.Errorf("plans and queues:\n%s", got)
	}

	token, err := r.client.CreateToken(ctx, control.TokenRequest{Life: time.Minute, Uses: 2})
	if err != nil || token.Token == "" || token.Uses != 2 || token.Join != k.Nodes[0].Addr {
		t.Errorf("token %+v, %v", token, err)
	}
	for what, q := range map[string]control.TokenRequest{
		"a life of weeks": {Life: 30 * 24 * time.Hour}, "a life of less than nothing": {Life: -1},
		"less than no use": {Uses: -1}, "uses for all the world": {Uses: 1 << 30},
	} {
		if _, err := r.client.CreateToken(ctx, q); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("a token with %s: %v", what, err)
		}
	}
	for _, drain := range []bool{true, false} {
		err := r.client.DrainNode(ctx, control.DrainRequest{Node: k.Nodes[0].Host, Drain: drain})
		if k, _ := r.client.Cluster(ctx); errors.Is(err, meta.ErrBusy) != drain || k.Nodes[0].State == "draining" {
			t.Errorf("drain %v of the only voter: %+v, %v", drain, k.Nodes, err)
		}
	}
	if err := r.client.RemoveNode(ctx, k.Self); !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), "it is the only node of its cluster, so unmount it") {
		t.Errorf("removed itself: %v", err)
	}
	if err := r.client.RemoveNode(ctx, "nowhere"); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("removed a node that is not there: %v", err)
	}

	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 2, Batch: "1"})
	p, err := r.client.Plan(ctx, control.PlanRequest{View: "d@order=full"})
	if err != nil || p.State != control.PlanFixed || p.Steps != 2 || p.Looked != 2 || p.Nodes[0].Bytes != 19 || p.Nodes[0].Ranks != 2 {
		t.Errorf("plan %+v, %v", p, err)
	}
	if all, err := r.client.All(ctx); err != nil || len(all) != 1 || all[0].NodeSummary == nil || *all[0].Plans != 0 || *all[0].Term != k.Term {
		t.Errorf("of all nodes: %+v, %v", all, err)
	}
	weighed := control.PlanRequest{View: "d", Weights: &control.Weights{Local: 1, Time: 1}}
	if _, err := r.client.Plan(ctx, weighed); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "one host holds all of the source; leave out --alpha, --beta and --pareto") {
		t.Errorf("weights of a source that one host has: %v", err)
	}
	if _, err := r.client.Plan(ctx, control.PlanRequest{View: "e"}); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("plan of nothing: %v", err)
	}
}

// A node that is of a cluster, be it one of its own, and is mounted with the token of
// another, is not mounted as if it had joined that. A token of its own may stay.
func TestJoinOfAnotherCluster(t *testing.T) {
	made := func(r running) string {
		token, err := r.client.CreateToken(t.Context(), control.TokenRequest{Life: time.Minute, Uses: 1})
		if err != nil {
			t.Fatal(err)
		}
		return token.Token
	}
	other := run(t, nil)
	k, err := other.client.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var c node.Config
	mine := run(t, func(own *node.Config) { c = *own })
	id, err := mine.client.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := made(mine)
	mine.stop()

	c.Join, c.Token = k.Nodes[0].Addr, made(other)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = node.Run(ctx, c, func() { t.Error("it is mounted"); cancel() })
	if !errors.Is(err, meta.ErrExist) || !strings.Contains(err.Error(), "the token is of another cluster") || !strings.Contains(err.Error(), c.State) {
		t.Errorf("with the token of another cluster: %v", err)
	}
	c.Token = own[:len(own)-3]
	err = node.Run(ctx, c, func() { t.Error("it is mounted"); cancel() })
	if !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "copy all of it") || !strings.Contains(err.Error(), c.State) {
		t.Errorf("with a part of a token: %v", err)
	}
	for _, token := range []string{own, ""} {
		again := run(t, func(now *node.Config) { *now = c; now.Token = token })
		if k, err := again.client.Cluster(t.Context()); err != nil || k.ID != id.ID {
			t.Errorf("with --join left as it was, it is of %+v, %v", k, err)
		}
		again.stop()
	}
}

// A node that cannot be mounted does not join, nor does it leave anything: its token is for
// the next try.
func TestANodeThatCannotBeMountedDoesNotJoin(t *testing.T) {
	var taken string
	first := run(t, func(c *node.Config) {
		taken = filepath.Join(filepath.Dir(c.Mount), "nvme")
		c.NVMe = []node.Disk{{Path: taken, Bytes: 64 << 20}}
	})
	ctx := t.Context()
	k, err := first.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	token, err := first.client.CreateToken(ctx, control.TokenRequest{Life: time.Minute, Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	removed, err := first.client.CreateToken(ctx, control.TokenRequest{Life: time.Minute, Uses: 1})
	if err == nil {
		err = first.client.DropToken(ctx, removed.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	readOnly := t.TempDir()
	if err := unix.Mount("none", readOnly, "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(readOnly, unix.MNT_DETACH)
	join := func(c *node.Config) { c.Listen, c.Join, c.Token = free.Addr().String(), k.Nodes[0].Addr, token.Token }
	for _, tt := range []struct {
		name   string
		change func(c *node.Config)
		want   error
	}{
		{"nvme below what is not there", func(c *node.Config) { c.NVMe = []node.Disk{{Path: c.State + "/none/nvme", Bytes: 64 << 20}} }, meta.ErrNotExist},
		{"nvme on a disk that is read-only", func(c *node.Config) { c.NVMe = []node.Disk{{Path: readOnly, Bytes: 64 << 20}} }, unix.EROFS},
		{"one nvme of two on a disk that is read-only", func(c *node.Config) {
			c.NVMe = []node.Disk{{Path: filepath.Join(filepath.Dir(c.Mount), "nvme"), Bytes: 64 << 20}, {Path: readOnly, Bytes: 64 << 20}}
		}, unix.EROFS},
		{"a token that was removed", func(c *node.Config) { c.Token = removed.Token }, meta.ErrDenied},
		{"one nvme by two names", func(c *node.Config) {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(filepath.Dir(c.Mount), link); err != nil {
				t.Fatal(err)
			}
			c.NVMe = []node.Disk{{Path: filepath.Dir(c.Mount), Bytes: 64 << 20}, {Path: link, Bytes: 64 << 20}}
		}, meta.ErrInvalid},
		{"pool on a disk that is read-only", func(c *node.Config) {
			c.PoolRAM, c.PoolNVMe = 16<<20, node.Disk{Path: readOnly, Bytes: 64 << 20}
		}, unix.EROFS},
		{"nowhere to be reached", func(c *node.Config) { c.Listen = "" }, meta.ErrInvalid},
		{"nvme of another daemon", func(c *node.Config) { c.NVMe = []node.Disk{{Path: taken, Bytes: 64 << 20}} }, meta.ErrBusy},
		{"pool below what is not there", func(c *node.Config) {
			c.PoolRAM, c.PoolNVMe = 16<<20, node.Disk{Path: c.State + "/none/pool", Bytes: 64 << 20}
		}, meta.ErrNotExist},
	} {
		c := configured(t)
		join(&c)
		tt.change(&c)
		if err := node.Run(ctx, c, func() { t.Error("it is mounted") }); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := os.Stat(c.State); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a state directory (%v)", tt.name, err)
		}
	}
	// In a directory that was there is afterwards what was in it before.
	c := configured(t)
	join(&c)
	c.Token = removed.Token
	log := filepath.Join(c.State, "rankfs.log")
	if err := errors.Join(os.Mkdir(c.State, 0700), os.WriteFile(log, nil, 0600)); err != nil {
		t.Fatal(err)
	}
	if err := node.Run(ctx, c, func() { t.Error("it is mounted") }); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("with a log: %v", err)
	}
	if in, err := filepath.Glob(c.State + "/*"); err != nil || len(in) != 1 || in[0] != log {
		t.Errorf("in the state directory are %q (%v)", in, err)
	}
	second := run(t, join)
	if k, err := second.client.Cluster(ctx); err != nil || len(k.Nodes) != 2 {
		t.Errorf("cluster %+v, %v", k, err)
	}
}
