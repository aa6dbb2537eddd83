package cluster_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
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

func write(t *testing.T, h *cluster.Host, file string, data []byte) {
	t.Helper()
	w, err := client(t, h).CreateFile(file, 2, 1<<20, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
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
	write(t, c.Host("data2"), file, data)
	if got := read(t, c.Host("client"), file); !bytes.Equal(got, data) {
		t.Errorf("%d bytes differ from the %d written", len(got), len(data))
	}
}
