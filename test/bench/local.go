package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	java "rankfs/test/hadoop"
)

// Readers of a local file of HDFS, each a process that stays.
type near struct {
	ours, theirs, theirsTCP *asked
}

const (
	nearFile = "/bench/2GiB"
	nearSize = 2 << 30
)

// near starts them. All have a datanode with the whole file on their host; ours
// and theirs take the blocks by file, theirsTCP over TCP.
func (b *bench) near() *near {
	h := b.hadoop()
	if h.near != nil {
		return h.near
	}
	h.put(nearFile, nearSize, hdfsBlock)
	program := filepath.Join(b.dir, "stream")
	output("go", "build", "-o", program, "./test/bench/stream")
	on := context.Background()
	h.near = &near{
		ours:      ask(h.host.Command(on, program, "-conf", h.cluster.ConfByFile())),
		theirs:    ask(h.host.JavaByFile(on, java.SpeedOptions, "Read")),
		theirsTCP: ask(h.host.JavaWith(on, java.SpeedOptions, "Read")),
	}
	return h.near
}

func (n *near) end() {
	for _, a := range []*asked{n.ours, n.theirs, n.theirsTCP} {
		a.end()
	}
}

// localBlocks reads the file by one stream: ours into slabs, the peer's to nowhere. The
// processor time is that of the client and the datanode together.
func localBlocks(peer func(*near) *asked, figure func(reading) float64) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		n, h := b.near(), b.hadoop()
		datanode, err := h.host.PID(cluster.DataNode)
		check(err)
		read := func(by *asked, order map[string]any) float64 {
			order["threads"] = 1
			before := processorTime(datanode)
			r := by.order(order)
			r.CPU += processorTime(datanode) - before
			return figure(r)
		}
		return func() float64 {
				return read(n.ours, map[string]any{"path": h.cluster.Nameservice() + nearFile})
			}, func() float64 {
				return read(peer(n), map[string]any{"ranges": []any{map[string]any{"path": nearFile, "offset": 0, "length": nearSize}}})
			}
	}
}

// processorTime is what a process has used so far, with threads that have ended.
func processorTime(pid int) float64 {
	var used unix.Timespec
	check(unix.ClockGettime(int32(^pid<<3|2), &used)) // as clock_getcpuclockid(3) makes it
	return float64(used.Nano()) / 1e9
}

// coldBlocks compares one stream of a file of HDFS whose blocks are on this host's disk,
// and not in its page cache, with what fio reads of the same files.
func coldBlocks(b *bench) (ours, theirs func() float64) {
	n, h := b.near(), b.hadoop()
	var files []string
	blocks, err := h.cluster.Blocks(context.Background(), nearFile)
	check(err)
	for _, block := range blocks {
		sums, err := h.host.Sums(block.ID)
		check(err)
		files = append(files, sums[:strings.LastIndexByte(sums, '_')])
	}
	ours = func() float64 {
		dropCaches()
		return perSecond(n.ours.order(map[string]any{"path": h.cluster.Nameservice() + nearFile, "threads": 1})) / 1e9
	}
	return ours, func() float64 { return fio(nearSize, files...) }
}

func byFile(n *near) *asked  { return n.theirs }
func overTCP(n *near) *asked { return n.theirsTCP }

// shuffledBlocks compares epochs in which each record of 4 KiB is a read of its
// own, as memory holds a quarter of the data: by two daemons on the host of a
// datanode that has them, of which one takes blocks by file, the other over TCP.
func shuffledBlocks(b *bench) (ours, theirs func() float64) {
	const name, size, block = "/bench/64MiB", 64 * mib, 4 * mib
	h, s := b.hadoop(), b.on("shuffled")
	h.put(name, size, block)
	side := func(conf string, byFile bool) func() float64 {
		p := daemon.New(s, filepath.Join(b.root, "bin/rankfs"), h.host, "--ram", "16MiB", "--hadoop-conf", conf)
		p.Start()
		p.Do("dataset", "create", "d", "--source", fmt.Sprintf("hdfs://%s%s?as=fixed:4096", h.cluster.Nameservice(), name),
			"--batch", "64", "--order", "full")
		epoch := 0
		return func() float64 {
			epoch++
			var before, after sourced
			p.Status(&before)
			took := seconds(func() {
				p.Must("sh", "-c", `cat "$0"/batch-?????? >/dev/null`, fmt.Sprintf("%s/datasets/d@epoch=%d/rank-0", p.Mount(), epoch))
			})
			p.Status(&after)
			if got, files := after.HDFS.Bytes-before.HDFS.Bytes, after.HDFS.Files-before.HDFS.Files; got < 0.9*size || (files == got) != byFile {
				check(fmt.Errorf("of %.0f bytes from datanodes %.0f came by file", got, files))
			}
			return size / took
		}
	}
	return side(h.cluster.ConfByFile(), true), side(h.cluster.Conf(), false)
}
