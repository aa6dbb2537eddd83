package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rankfs/test/eventually"
)

// poolBlobs compares puts and gets of blobs, of which two nodes have a copy, with those of
// a pool whose proxy keeps its records in Redis, as test/mpi/blobs has it: nine messages a
// put, over loopback and in the clear.
func poolBlobs(b *bench) (misses int) {
	p := b.poolNodes("blobs", 2)
	for _, size := range []struct {
		name        string
		bytes, keys int
	}{{"64 KiB", 64 << 10, 1000}, {"4 MiB", 4 * mib, 32}} {
		o := outcome{name: "pool, put and get of blobs of " + size.name + " / nine messages and Redis", target: 5}
		args := []string{"-b", strconv.Itoa(size.bytes), "-n", strconv.Itoa(size.keys)}
		for turn := range *turns + 1 {
			stage, remove := p.stage("maps=1") // the job has the blobs
			program := filepath.Join(b.root, "test/mpi/bin/blobs")
			ours := p.Nodes[0].Must(program, append(args, "pool", p.at(0, strings.TrimSuffix(stage, "stage"))+"blob")...)
			remove()
			theirs := b.byRedis(args)
			if word(ours, "sum") != word(theirs, "sum") {
				check(fmt.Errorf("the sides read different bytes: %s%s", ours, theirs))
			}
			if turn > 0 {
				o.values = append(o.values, value(ours, "put+get/s")/value(theirs, "put+get/s"))
				o.note = fmt.Sprintf("%.0f a second against %.0f, the last time", value(ours, "put+get/s"), value(theirs, "put+get/s"))
			}
		}
		misses += missed(o)
	}
	return misses
}

// byRedis runs the client of messages beside a Redis of its own, which writes nothing to
// the disk.
func (b *bench) byRedis(args []string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	check(l.Close())
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", b.dir)
	check(server.Start())
	defer server.Wait()
	defer stop()
	eventually.Within(b.tb, time.Minute, "Redis answers", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return b.tool("blobs", append(args, "redis", port)...)
}
