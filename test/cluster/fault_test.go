package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/hadoop"
)

// soon is long enough for anything that is to happen, on a busy machine.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hadoop.StartTime)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDataNodeDiesAndComesBack(t *testing.T) {
	c := cluster.Exclusive(t)
	file := c.Dir(t) + "/file"
	write(t, c, c.Host("data1"), file, []byte("hello"))
	must(t, c.Host("data1").Kill(cluster.DataNode))
	if got := read(t, c.Host("client"), file); string(got) != "hello" {
		t.Errorf("read %q", got)
	}
	must(t, c.WaitLive(soon(t), 2))
	must(t, c.Host("data1").Start(cluster.DataNode))
	must(t, c.WaitLive(soon(t), 3))
}

// A datanode that was started again is of use when all is well: before it was missed, the
// namenodes did not know that it had been gone.
func TestAllIsWell(t *testing.T) {
	c := cluster.Exclusive(t)
	must(t, c.Host("data1").Restart(cluster.DataNode))
	must(t, c.WaitWell(soon(t)))
	conn, err := c.Host("client").DialContext(soon(t), "tcp", "data1:9866")
	must(t, err)
	must(t, conn.Close())
}

// TestBrokenIsRepaired leaves it to the harness to put things right.
func TestBrokenIsRepaired(t *testing.T) {
	t.Run("break", func(t *testing.T) {
		c := cluster.Exclusive(t)
		must(t, c.Host("name1").Kill(cluster.NameNode))
		must(t, c.Host("data1").Stop(cluster.DataNode))
		must(t, c.Host("data2").Kill(cluster.DataNode))
		must(t, c.Host("data3").LinkDown())
		must(t, c.Host("data3").LinkRate(1<<20))
	})
	state, err := cluster.Shared(t).State(soon(t))
	must(t, err)
	if state.Live != 3 {
		t.Errorf("%+v", state)
	}
}

func TestLinkDownIsSilence(t *testing.T) {
	c := cluster.Exclusive(t)
	dial := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn, err := c.Host("client").DialContext(ctx, "tcp", "data1:9866")
		if err == nil {
			conn.Close()
		}
		return err
	}
	must(t, dial())
	must(t, c.Host("data1").LinkDown())
	if err := dial(); err == nil {
		t.Error("connected to a host whose link is down")
	}
	must(t, c.Host("data1").LinkUp())
	for ctx := soon(t); dial() != nil; {
		must(t, ctx.Err())
	}
}

func TestLinkRate(t *testing.T) {
	c := cluster.Exclusive(t)
	h := c.Host("client")
	shown := func() string {
		out, err := h.Command(soon(t), "tc", "qdisc", "show", "dev", "eth0").CombinedOutput()
		must(t, err)
		return string(out)
	}
	must(t, h.LinkRate(10_000_000))
	if got := shown(); !strings.Contains(got, "rate 80Mbit") {
		t.Errorf("the link is %s", got)
	}
	must(t, h.LinkRate(0))
	if got := shown(); strings.Contains(got, "rate") {
		t.Errorf("the link is still %s", got)
	}
}

func TestFailOver(t *testing.T) {
	tests := []struct {
		name  string
		first func(c *cluster.Cluster) error
	}{
		{"agreed", func(c *cluster.Cluster) error { return nil }},
		{"after death", func(c *cluster.Cluster) error { return c.Host("name1").Kill(cluster.NameNode) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := cluster.Exclusive(t)
			file := c.Dir(t) + "/file"
			write(t, c, c.Host("client"), file, []byte("hello"))
			must(t, test.first(c))
			must(t, c.FailOver(soon(t)))
			if got := read(t, c.Host("client"), file); string(got) != "hello" {
				t.Errorf("read %q", got)
			}
			active, err := c.Active(soon(t))
			must(t, err)
			if active.Name != "name2" {
				t.Errorf("%s is active", active.Name)
			}
		})
	}
}

// cat reads by Hadoop's own client, and gives up soon.
func cat(t *testing.T, h *cluster.Host, file string) ([]byte, error) {
	t.Helper()
	c := h.Java(soon(t), "org.apache.hadoop.fs.FsShell", "-D", "dfs.client.retry.window.base=1", "-cat", file)
	var said strings.Builder
	c.Stderr = &said
	data, err := c.Output()
	t.Log(said.String())
	return data, err
}

func TestReplicas(t *testing.T) {
	tests := []struct {
		name   string
		damage func(h *cluster.Host, block uint64) error
	}{
		{"corrupt", (*cluster.Host).CorruptReplica},
		{"deleted", (*cluster.Host).DeleteReplica},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := cluster.Exclusive(t)
			file := c.Dir(t) + "/file"
			data := bytes.Repeat([]byte("x"), 10_000)
			h := c.Host("data2")
			write(t, c, h, file, data)
			for _, b := range blocks(t, c, file) {
				must(t, test.damage(h, b.ID))
			}
			// There is another replica; it is far away.
			got, err := cat(t, h, file)
			must(t, err)
			if !bytes.Equal(got, data) {
				t.Errorf("read %d bytes, wrong", len(got))
			}
		})
	}
}

func TestCorruptIsFound(t *testing.T) {
	c := cluster.Exclusive(t)
	file := c.Dir(t) + "/file"
	h := c.Host("data2")
	write(t, c, h, file, bytes.Repeat([]byte("x"), 10_000))
	for _, b := range blocks(t, c, file) {
		for _, host := range b.Hosts {
			must(t, c.Host(host).CorruptReplica(b.ID))
		}
	}
	if got, err := cat(t, h, file); err == nil {
		t.Errorf("read %d bytes of a corrupt file", len(got))
	}
}

func TestSafeMode(t *testing.T) {
	c := cluster.Exclusive(t)
	dir := c.Dir(t)
	must(t, c.SafeMode(soon(t), true))
	if err := client(t, c.Host("client")).Mkdir(dir+"/sub", 0o755); err == nil {
		t.Error("made a directory in safe mode")
	}
	must(t, c.SafeMode(soon(t), false))
	must(t, client(t, c.Host("client")).Mkdir(dir+"/sub", 0o755))
}

// TestKilledWhileAlone kills a process that has broken the cluster.
func TestKilledWhileAlone(t *testing.T) {
	if os.Getenv(breaker) != "" {
		c := cluster.Exclusive(t)
		must(t, c.Host("data1").Kill(cluster.DataNode))
		die()
	}
	if err := rerun(t, breaker); err == nil {
		t.Fatal("the process that was to die did not")
	}
	c := cluster.Shared(t)
	if state, err := c.State(soon(t)); err != nil || state.Live != 3 {
		t.Errorf("%+v, %v", state, err)
	}
	if conn, err := c.Host("client").DialContext(soon(t), "tcp", "data1:9866"); err != nil {
		t.Error(errors.Join(errors.New("the datanode was not started again"), err))
	} else {
		conn.Close()
	}
}
