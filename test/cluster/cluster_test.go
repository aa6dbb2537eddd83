package cluster_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
	"rankfs/test/hadoop"
)

func client(t *testing.T, h *cluster.Host) *hdfs.Client {
	t.Helper()
	c, err := h.HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// write writes a file of two replicas from a host.
func write(t *testing.T, c *cluster.Cluster, h *cluster.Host, file string, data []byte) {
	t.Helper()
	h.Put(t, file, data, 2, 1<<20)
	if err := c.WaitReplicas(soon(t), file, 2); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, h *cluster.Host, file string) []byte {
	t.Helper()
	r, err := client(t, h).Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadOnAnotherHost(t *testing.T) {
	c := cluster.Shared(t)
	file := c.Dir(t) + "/file"
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	write(t, c, c.Host("data2"), file, data)
	if got := read(t, c.Host("client"), file); !bytes.Equal(got, data) {
		t.Errorf("%d bytes differ from the %d written", len(got), len(data))
	}
}

func blocks(t *testing.T, c *cluster.Cluster, file string) []cluster.Block {
	t.Helper()
	b, err := c.Blocks(soon(t), file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFirstReplicaIsLocal(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	for _, h := range c.DataNodes() {
		file := dir + "/" + h.Name
		write(t, c, h, file, bytes.Repeat([]byte("x"), 3<<20))
		all := blocks(t, c, file)
		if len(all) != 3 {
			t.Errorf("%d blocks, want 3", len(all))
		}
		for _, b := range all {
			if len(b.Hosts) != 2 || !slices.Contains(b.Hosts, h.Name) || !h.HasReplica(b.ID) {
				t.Errorf("a block written on %s is on %v", h.Name, b.Hosts)
			}
		}
	}
}

func TestReadProgram(t *testing.T) {
	c := cluster.Shared(t)
	file := c.Dir(t) + "/file"
	write(t, c, c.Host("data1"), file, make([]byte, 3<<20))
	p, err := hadoop.StartCommand(c.Host("client").Java(soon(t), "Read"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	order := hadoop.ReadOrder{Threads: 2, Warmups: 1, Ranges: []hadoop.Range{
		{Path: file, Length: -1}, {Path: file, Offset: 1<<20 - 1, Length: 2}, {Path: file, Offset: 3 << 20, Length: -1},
	}}
	var got hadoop.ReadAnswer
	if err := p.Ask(order, &got); err != nil {
		t.Fatal(err)
	}
	if got.Bytes != 3<<20+2 || got.Wall <= 0 || got.CPU < 0 {
		t.Errorf("%+v", got)
	}
	order.Ranges = []hadoop.Range{{Path: file, Offset: 1, Length: 3 << 20}}
	if err := p.Ask(order, &got); err == nil || !strings.Contains(err.Error(), "early") {
		t.Errorf("reading past the end: %v", err)
	}
}
