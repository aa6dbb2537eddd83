package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/sourcetest"
)

// A read that is given up, wherever it stands, leaves no connection, descriptor
// or goroutine behind, and the next one is whole.
func TestGivenUp(t *testing.T) {
	c := cluster.Shared(t)
	path := c.Dir(t) + "/f"
	content := bytes.Repeat([]byte("0123456789abcdef"), 2<<20)
	c.Host("data2").Put(t, path, content, 2, 4<<20)
	routines, files := goleak.IgnoreCurrent(), descriptors(t)
	k, err := hdfs.New(hdfs.Config{Conf: c.Conf(), User: "root", Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("reads", func(t *testing.T) {
		d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
			return fetch.Open("hdfs://rankfs"+path+"?as=fixed:4096", &fetch.Env{HDFS: k})
		}})
		cancelled := 0
		for i := range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			at := k.Stats().Bytes + uint64(i<<14)
			go func() {
				defer cancel()
				_ = eventually.Until(ctx, comesTo(k, at+1))
			}()
			got, err := readAll(d, ctx)
			switch {
			case errors.Is(err, context.Canceled):
				cancelled++
			case err != nil || !bytes.Equal(got, content):
				t.Fatalf("other bytes, or %v", err)
			}
			cancel()
		}
		if cancelled < 20 {
			t.Errorf("%d of 40 reads were given up", cancelled)
		}
		if s := k.Stats(); s.Streams != 0 || s.Failures != 0 {
			t.Errorf("the counters say %+v", s)
		}
		if open := sockets(t, established); open > 2 { // to the namenodes
			t.Errorf("%d connections are open between reads", open)
		}
		mustRead(t, d, content)
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(routines); err != nil {
		t.Error(err)
	}
	if open := sockets(t, established); open != 0 {
		t.Errorf("%d connections are open at the end", open)
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors are open, %d were", now, files)
	}
}
