package hdfs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/peers"
	"rankfs/fetch/splits"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/cluster"
)

// helper is another node, which finds what find does, behind a server of its own. One
// without find does not know the call.
func helper(t *testing.T, find peers.Finder) splits.Helper {
	t.Helper()
	var calls wire.Calls
	if find != nil {
		calls = peers.FindFor(find)
	}
	server, err := wire.NewServer(wire.Limits{}, nil, calls)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, l) }()
	w := wire.New(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}, wire.Config{})
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, w.Close()); err != nil {
			t.Error(err)
		}
	})
	return splits.Helper{Host: "other", Find: func(ctx context.Context, scheme string, what []byte, to io.Writer) error {
		return peers.New(w, peers.Config{}).Find(ctx, "other", scheme, what, to)
	}}
}

// finder looks through splits for other nodes as a node with such clusters does.
func finder(k *hdfs.Clusters) *splits.Finder {
	return splits.NewFinder("", 32<<20, (&fetch.Env{HDFS: k}).Looks())
}

// says is a node that answers every question with the same, found or not.
func says(numbers ...uint64) splits.Helper {
	var b []byte
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return answers(b)
}

func answers(b []byte) splits.Helper {
	return splits.Helper{Host: "other", Find: func(_ context.Context, _ string, _ []byte, to io.Writer) error {
		_, err := to.Write(b)
		return err
	}}
}

// indexed is the index of a source, made with the help of other nodes.
func indexed(t *testing.T, k *hdfs.Clusters, uri string, helpers ...splits.Helper) []byte {
	t.Helper()
	src, err := fetch.Open(uri, &fetch.Env{HDFS: k})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	src.(*hdfs.Source).Divide(helpers)
	path := filepath.Join(t.TempDir(), "index")
	last := int64(0)
	err = fetch.Build(t.Context(), src, path, func(bytes, total int64, _ uint64) {
		if bytes < last || bytes > total {
			t.Errorf("%d of %d bytes after %d", bytes, total, last)
		}
		last = bytes
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whichever nodes look through the splits of a source, well or badly or not at all: the
// index is to the byte that of one node alone.
func TestSplitsReadByOtherNodes(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	content, _ := text(1500)
	values := manyValues()
	c.Host("data1").Put(t, dir+"/lines/a", content, 2, block)
	c.Host("data2").Put(t, dir+"/lines/b", content[:300_000], 2, block)
	c.Host("data1").Put(t, dir+"/values/a", sequenceOf(values, true), 2, block)
	c.Host("data2").Put(t, dir+"/values/b", sequenceOf(values[:300], false), 2, block)
	nodes := make([]*hdfs.Clusters, 3)
	for i := range nodes {
		nodes[i] = clusters(t, c, nil)
	}
	own := clusters(t, c, nil)
	other := func(i int) splits.Helper { return helper(t, finder(nodes[i]).Find) }
	longer := func(ctx context.Context, scheme string, what []byte) (*os.File, int64, error) {
		f, size, err := finder(nodes[0]).Find(ctx, scheme, what)
		return f, size + 100, err // breaks off in the middle
	}
	elsewhere := func(context.Context, string, []byte) (*os.File, int64, error) { return nil, 0, meta.ErrStale }
	for _, as := range []string{"lines", "chunks", "sequence"} {
		uri := "hdfs://rankfs" + dir + "/lines?as=" + as
		if as == "sequence" {
			uri = "hdfs://rankfs" + dir + "/values?as=" + as
		}
		want := indexed(t, own, uri)
		for _, test := range []struct {
			name    string
			helpers []splits.Helper
			help    int // how many of them are of use
		}{
			{"one other", []splits.Helper{other(0)}, 1},
			{"three others", []splits.Helper{other(0), other(1), other(2)}, 3},
			{"one breaks off in the middle", []splits.Helper{other(1), helper(t, longer)}, 1},
			{"one sees another version", []splits.Helper{other(1), helper(t, elsewhere)}, 1},
			{"one is of the release before", []splits.Helper{helper(t, nil)}, 0},
			{"numbers behind the end", []splits.Helper{says(1 << 40)}, 0},
			{"numbers that wrap", []splits.Helper{says(1, 1<<64-1, 1)}, 0},
			{"more than there can be", []splits.Helper{answers(make([]byte, block+1))}, 0},
		} {
			t.Run(as+", "+test.name, func(t *testing.T) {
				before := nodes[1].Stats().Bytes
				if got := indexed(t, own, uri, test.helpers...); !bytes.Equal(got, want) {
					t.Errorf("it is another index, of %d bytes and not %d", len(got), len(want))
				}
				if test.help > 0 && len(test.helpers) > 1 && nodes[1].Stats().Bytes == before {
					t.Error("a node that would help has read nothing")
				}
			})
		}
	}
}

// A node looks through what the one that asks could read itself, of the version that it
// means, and says why not.
func TestWhatANodeFindsForOthers(t *testing.T) {
	c := cluster.Shared(t)
	path := c.Dir(t) + "/f"
	content := bytes.Repeat([]byte("a line of 24 characters\n"), 40*block/24)
	c.Host("data1").Put(t, path, content, 2, block)
	var what atomic.Pointer[[]byte]
	indexed(t, clusters(t, c, nil), "hdfs://rankfs"+path+"?as=lines", splits.Helper{Find: func(_ context.Context, _ string, q []byte, _ io.Writer) error {
		what.Store(&q)
		return errors.ErrUnsupported
	}})
	k := finder(clusters(t, c, nil))
	ask := func(change map[string]any) (int64, error) {
		t.Helper()
		var q map[string]any
		if err := json.Unmarshal(*what.Load(), &q); err != nil {
			t.Fatal(err)
		}
		for key, value := range change {
			q[key] = value
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		f, size, err := k.Find(ctx, uri.HDFS, b)
		if err == nil {
			f.Close()
		}
		return size, err
	}
	if size, err := ask(nil); err != nil || size == 0 {
		t.Fatalf("found %d bytes, %v", size, err)
	}
	for _, test := range []struct {
		name   string
		change map[string]any
		is     error
	}{
		{"another version", map[string]any{"stamp": "id=1,size=9999999,mtime=1"}, meta.ErrStale},
		{"a file that is gone", map[string]any{"path": path + "-not"}, meta.ErrStale},
		{"a directory", map[string]any{"path": "/"}, nil},
		{"another user", map[string]any{"as": "mallory"}, meta.ErrDenied},
		{"no user", map[string]any{"as": ""}, meta.ErrDenied},
		{"an HDFS of the asking node's choice", map[string]any{"authority": "10.0.0.1:8020"}, meta.ErrDenied},
		{"a form without splits", map[string]any{"form": "files"}, meta.ErrInvalid},
		{"no form", map[string]any{"form": ""}, meta.ErrInvalid},
		{"no path", map[string]any{"path": ""}, meta.ErrInvalid},
		{"nothing", map[string]any{"from": 5, "to": 5}, meta.ErrInvalid},
		{"before the file", map[string]any{"from": -5}, meta.ErrInvalid},
		{"behind the file", map[string]any{"to": len(content) + 1}, meta.ErrInvalid},
		{"a very large split", map[string]any{"from": 0, "to": 1 << 40, "stamp": "id=1,size=1099511627776,mtime=1"}, meta.ErrInvalid},
	} {
		if size, err := ask(test.change); err == nil || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: found %d bytes, %v; want %v", test.name, size, err, test.is)
		}
	}
	if _, _, err := k.Find(t.Context(), uri.HDFS, []byte("{")); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("half a question: %v", err)
	}
}
