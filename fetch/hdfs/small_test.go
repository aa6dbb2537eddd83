package hdfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/sourcetest"
)

// To register many small files of a directory takes a listing of it before and one after, of
// a call for each thousand files, and no call for each file. To attach them takes another.
func TestCallsOfManyFiles(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	const files, writers, pages = 2100, 7, 3
	var work sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		k := dial(t, c.Host("data1"))
		work.Go(func() {
			for i := w; i < files && errs[w] == nil; i += writers {
				errs[w] = k.CreateEmptyFile(fmt.Sprintf("%s/%06d", dir, i))
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	k := clusters(t, c, nil)
	calls, err := k.CountCalls(c.Nameservice())
	if err != nil {
		t.Fatal(err)
	}
	src, err := fetch.Open("hdfs://"+c.Nameservice()+dir, &fetch.Env{HDFS: k})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := fetch.Build(t.Context(), src, t.TempDir()+"/index", nil); err != nil {
		t.Fatal(err)
	}
	if n := calls.Of("getListing"); n != 2*pages {
		t.Errorf("%d calls list %d files twice, want %d", n, files, 2*pages)
	}
	if _, err := src.Fingerprint(t.Context()); err != nil { // as to attach them
		t.Fatal(err)
	}
	if n := calls.Of("getListing"); n != 3*pages {
		t.Errorf("%d calls list %d files three times, want %d", n, files, 3*pages)
	}
	if located, stats := calls.Of("getBlockLocations"), calls.Of("getFileInfo"); located > 0 || stats != 3 {
		t.Errorf("besides, blocks are asked for %d times, and states %d times", located, stats)
	}
}

// Many small files, read one by one in any order, leave no port, connection,
// descriptor or goroutine behind.
func TestSmallFiles(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	const n = 600
	content := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "file %06d ", i), 100) }
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for i := w; i < n; i += 6 {
				c.Host("data2").Put(t, fmt.Sprintf("%s/%06d", dir, i), content(i), 1, 1<<20)
			}
		})
	}
	writers.Wait()
	waiting, routines, files := sockets(t, timeWait), goleak.IgnoreCurrent(), descriptors(t)
	k, err := hdfs.New(hdfs.Config{Conf: c.Conf(), User: "root", Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("epoch", func(t *testing.T) {
		d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
			return fetch.Open("hdfs://rankfs"+dir, &fetch.Env{HDFS: k})
		}})
		if d.Records() != n {
			t.Fatalf("%d records", d.Records())
		}
		order := rand.Perm(n)
		for batch := range n / 50 {
			var extents []index.Extent
			var want []byte
			for _, i := range order[batch*50:][:50] {
				extents = append(extents, d.Extent(uint64(i)))
				want = append(want, content(i)...)
			}
			dst := make([]byte, len(want))
			if err := d.Read(t.Context(), extents, dst); err != nil || !bytes.Equal(dst, want) {
				t.Fatalf("other bytes, or %v", err)
			}
		}
		if open := sockets(t, established); open > 2 { // to the namenodes
			t.Errorf("%d connections are open between reads", open)
		}
	})
	if s := k.Stats(); s.Streams != 0 || s.Failures != 0 {
		t.Errorf("the counters say %+v", s)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(routines); err != nil {
		t.Error(err)
	}
	if now := sockets(t, timeWait); now > waiting+n/10 {
		t.Errorf("%d ports wait for a minute, %d did before", now, waiting)
	}
	if open := sockets(t, established); open != 0 {
		t.Errorf("%d connections are open at the end", open)
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors are open, %d were", now, files)
	}
}

// States of sockets, as the kernel's tables have them.
const (
	established = "01"
	timeWait    = "06"
)

// sockets counts those of this host in a state: of this process, if they are
// of one at all, to the ports of Hadoop.
func sockets(t *testing.T, state string) (n int) {
	t.Helper()
	own := make(map[string]bool)
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		own[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
	}
	table, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != state {
			continue
		}
		hadoop := strings.HasSuffix(f[2], ":268A") || strings.HasSuffix(f[2], ":1F54") // 9866, 8020
		if hadoop && (state == timeWait || own[f[9]]) {
			n++
		}
	}
	return n
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// There is no memory where a batch of several files is to go: an error, and the
// process lives.
func TestNoRoom(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	for i := range 4 {
		c.Host("data1").Put(t, fmt.Sprint(dir, "/", i), []byte("some bytes of a file\n"), 1, 1<<20)
	}
	d := dataset(t, c, dir, nil)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Pages behind the end of a file are as those that a full tmpfs lacks.
	dst, err := unix.Mmap(int(f.Fd()), 0, int(d.Bytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(dst)
	if err := d.Read(t.Context(), d.Extents(0, 4), dst); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("ends with %v", err)
	}
}
