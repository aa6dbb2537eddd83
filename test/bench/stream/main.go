// Stream reads files of HDFS into slabs as the daemon does, chunk by chunk, and
// keeps none. Each line of stdin is an order, answered by a line:
//
//	{"path": "/a", "threads": 2}
//	{"bytes": 1048576, "wall": 0.01, "cpu": 0.02, "received": 1052672}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
)

var conf = flag.String("conf", "", "Hadoop configuration directory")

type order struct {
	Path    string `json:"path"`
	Threads int    `json:"threads"`
}

type answer struct {
	Bytes    int64   `json:"bytes"`
	Wall     float64 `json:"wall"`
	CPU      float64 `json:"cpu"`
	Received uint64  `json:"received"`
	Error    string  `json:"error,omitempty"`
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stream:", err)
		os.Exit(1)
	}
}

func run() error {
	clusters, err := hdfs.New(hdfs.Config{Conf: *conf})
	if err != nil {
		return err
	}
	defer clusters.Close()
	// The daemon's own setting: see cmd/internal/node.
	runtime.GOMAXPROCS(2 * runtime.NumCPU())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := serve(clusters, in.Bytes()); err != nil {
			return err
		}
	}
	return in.Err()
}

func serve(clusters *hdfs.Clusters, line []byte) error {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	a, err := measure(clusters, o)
	if err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func measure(clusters *hdfs.Clusters, o order) (a answer, err error) {
	d, x, err := attach(clusters, o.Path)
	if err != nil {
		return a, err
	}
	defer d.Close()
	dir, done, err := room()
	if err != nil {
		return a, err
	}
	defer done()
	slabs := make([][]byte, o.Threads)
	for i := range slabs {
		if slabs[i], err = slab(dir, x.Chunk(0).Bytes); err != nil {
			return a, err
		}
		defer unix.Munmap(slabs[i])
	}
	before, received, start := cpu(), clusters.Stats().Bytes, time.Now()
	var next, bytes atomic.Int64
	var failed atomic.Value
	var work sync.WaitGroup
	for _, slab := range slabs {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < x.Chunks(); i = int(next.Add(1)) - 1 {
				c := x.Chunk(i)
				e := x.Extent(c.First)
				e.Len = c.Bytes
				if err := d.Read(context.Background(), []index.Extent{e}, slab[:c.Bytes]); err != nil {
					failed.Store(err)
				}
				bytes.Add(c.Bytes)
			}
		})
	}
	work.Wait()
	if err, ok := failed.Load().(error); ok {
		return a, err
	}
	return answer{Bytes: bytes.Load(), Wall: time.Since(start).Seconds(), CPU: cpu() - before,
		Received: clusters.Stats().Bytes - received}, nil
}

func attach(clusters *hdfs.Clusters, path string) (*fetch.Dataset, *index.Index, error) {
	dir, err := os.MkdirTemp("", "stream-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	src, err := fetch.Open("hdfs://"+path+"?as=fixed:1048576", &fetch.Env{HDFS: clusters})
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, "index")
	if err := fetch.Build(context.Background(), src, file, nil); err != nil {
		return nil, nil, err
	}
	x, err := index.Open(file)
	if err != nil {
		return nil, nil, err
	}
	d, err := fetch.Attach(context.Background(), src, x)
	return d, x, err
}

// slab is memory as the daemon's: a mapping of a file on a tmpfs with huge
// pages, there and mapped.
func slab(dir string, size int64) ([]byte, error) {
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zeros := make([]byte, 8<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return nil, err
		}
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// room is a tmpfs for slabs, which goes with done.
func room() (dir string, done func(), err error) {
	if dir, err = os.MkdirTemp("", "slabs-"); err != nil {
		return "", nil, err
	}
	if err := unix.Mount("slabs", dir, "tmpfs", 0, "huge=within_size"); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() {
		unix.Unmount(dir, unix.MNT_DETACH)
		os.Remove(dir)
	}, nil
}

func cpu() float64 {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
