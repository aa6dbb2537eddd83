package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
)

// hadoop is the HDFS of the benchmark, with the programs that run on one of its hosts.
type hadoop struct {
	cluster *cluster.Cluster
	host    *cluster.Host // with a datanode
	ours    *asked
	theirs  *asked
	near    *near
}

func (b *bench) hadoop() *hadoop {
	if b.hdfs != nil {
		return b.hdfs
	}
	c, err := cluster.Open(context.Background(), "plain")
	check(err)
	b.hdfs = &hadoop{cluster: c, host: c.Host("data1")}
	return b.hdfs
}

func (h *hadoop) close() {
	if h.ours != nil {
		h.ours.end()
		h.theirs.end()
	}
	if h.near != nil {
		h.near.end()
	}
	h.cluster.Close()
}

// An asked is a program that answers orders, a line each.
type asked struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func ask(cmd *exec.Cmd) *asked {
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	return &asked{cmd, in, bufio.NewScanner(out)}
}

func (a *asked) end() {
	a.in.Close()
	a.cmd.Wait()
}

// A reading is a program's report of bytes that it read.
type reading struct {
	Bytes    float64 `json:"bytes"`
	Wall     float64 `json:"wall"`
	CPU      float64 `json:"cpu"`
	Received float64 `json:"received"`
	Error    string  `json:"error"`
}

func (a *asked) order(v any) (r reading) {
	line, err := json.Marshal(v)
	check(err)
	_, err = fmt.Fprintf(a.in, "%s\n", line)
	check(err)
	if !a.out.Scan() {
		check(fmt.Errorf("%s ended", a.cmd))
	}
	check(json.Unmarshal(a.out.Bytes(), &r))
	if r.Error != "" {
		check(errors.New(r.Error))
	}
	return r
}

const (
	hdfsFile  = "/bench/1GiB"
	hdfsBlock = 128 << 20
	hdfsSize  = 1 << 30
)

// hdfsStreams reads a file with that many threads, by us and by Hadoop's own
// client, each in a process that stays. Ours keeps what it reads in slabs.
func hdfsStreams(threads int, figure func(reading) float64) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) { return b.streams(threads, figure) }
}

func (b *bench) streams(threads int, figure func(reading) float64) (ours, theirs func() float64) {
	h := b.hadoop()
	if h.ours == nil {
		h.put(hdfsFile, hdfsSize, hdfsBlock)
		program := filepath.Join(b.dir, "stream")
		output("go", "build", "-o", program, "./test/bench/stream")
		h.ours = ask(h.host.Command(context.Background(), program, "-conf", h.cluster.Conf()))
		h.theirs = ask(h.host.Java(context.Background(), "Read"))
	}
	type part struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Length int64  `json:"length"`
	}
	var parts []part
	for at := int64(0); at < hdfsSize; at += hdfsBlock {
		parts = append(parts, part{hdfsFile, at, hdfsBlock})
	}
	if threads == 1 {
		parts = []part{{hdfsFile, 0, hdfsSize}}
	}
	return func() float64 {
			return figure(h.ours.order(map[string]any{"path": h.cluster.Nameservice() + hdfsFile, "threads": threads}))
		}, func() float64 {
			return figure(h.theirs.order(map[string]any{"ranges": parts, "threads": threads}))
		}
}

func perSecond(r reading) float64 { return r.Bytes / r.Wall }
func cpuPerGiB(r reading) float64 { return r.CPU / r.Bytes * (1 << 30) }

// put writes a file from the benchmark's host, so that its datanode has all.
func (h *hadoop) put(name string, size, block int64) {
	c, err := h.host.HDFS("root")
	check(err)
	defer c.Close()
	check(c.MkdirAll(filepath.Dir(name), 0o755))
	if info, err := c.Stat(name); err == nil && info.Size() == size {
		return
	}
	w, err := c.CreateFile(name, 2, block, 0o644)
	check(err)
	piece := bytes.Repeat([]byte("rankfs\n\x00"), 1<<17)
	for range size / int64(len(piece)) {
		_, err := w.Write(piece)
		check(err)
	}
	check(cluster.Finish(w))
}

const manyFiles = 100_000

// locations lists a directory of many files of one block, with all places, and
// by hdfs dfs -ls.
func locations(b *bench) (ours, theirs func() float64) {
	h := b.hadoop()
	h.many("/bench/many")
	program := filepath.Join(b.dir, "locate")
	output("go", "build", "-o", program, "./test/bench/locate")
	timed := func(cmd *exec.Cmd) float64 {
		start := time.Now()
		out, err := cmd.Output()
		check(err)
		if n := strings.Count(string(out), "\n"); n < 1 {
			check(fmt.Errorf("%s printed nothing", cmd))
		}
		return time.Since(start).Seconds()
	}
	return func() float64 {
			return timed(h.host.Command(context.Background(), program, h.cluster.Conf(), "/bench/many"))
		}, func() float64 {
			return timed(h.host.Java(context.Background(), "org.apache.hadoop.fs.FsShell", "-ls", "/bench/many"))
		}
}

// many makes files of one small block.
func (h *hadoop) many(dir string) {
	c, err := h.host.HDFS("root")
	check(err)
	defer c.Close()
	if _, err := c.Stat(dir + "/done"); err == nil {
		return
	}
	check(c.MkdirAll(dir, 0o755))
	var work sync.WaitGroup
	errs := make(chan error, 8)
	for worker := range 8 {
		work.Go(func() {
			errs <- func() error {
				c, err := h.host.HDFS("root")
				if err != nil {
					return err
				}
				defer c.Close()
				for i := worker; i < manyFiles; i += 8 {
					if err := touch(c, fmt.Sprintf("%s/f-%06d", dir, i)); err != nil {
						return err
					}
				}
				return nil
			}()
		})
	}
	work.Wait()
	for range 8 {
		check(<-errs)
	}
	check(touch(c, dir+"/done"))
}

func touch(c *hdfs.Client, name string) error {
	w, err := c.CreateFile(name, 1, 1<<20, 0o644)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte("rankfs\n")); err != nil {
		return err
	}
	return cluster.Finish(w)
}
