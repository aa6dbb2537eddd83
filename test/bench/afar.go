package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// fromPeer compares what a rank reads of another node's disk, by the daemons of both,
// with what iperf3 brings over the same link. A batch is 8 MiB. The daemons encrypt and
// check, and have it in slabs; iperf3 sends zeros in the clear.
func fromPeer(b *bench) (misses int) {
	const size, rate = 256 * mib, 125e6
	s := b.on("peers")
	hosts := cluster.Bare(s).Hosts()[:2]
	dir := s.TempDir() // which is empty on the other host
	on := func(name string, args ...string) { check(hosts[0].Command(context.Background(), name, args...).Run()) }
	on("mount", "-t", "tmpfs", "none", dir)
	s.Cleanup(func() { on("umount", dir) })
	on("sh", "-c", fmt.Sprintf("head -c %d /dev/urandom >%s/random", size, dir))
	g := daemon.NewTeam(s, filepath.Join(b.root, "bin/rankfs"), hosts, "--ram", "512MiB")
	there, here := g.Nodes[0], g.Nodes[1]
	there.Do("dataset", "create", "d", "--source", "file:"+dir+"/random", "--as", "fixed:65536", "--batch", "128")
	g.Await("d")
	for _, h := range hosts {
		check(h.LinkRate(rate))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server := hosts[0].Command(ctx, "iperf3", "-s")
	check(server.Start())
	defer server.Wait()
	defer stop()
	o := outcome{name: "cluster, batches of another node, by daemons, 1 Gbit/s, TLS / iperf3", target: 0.95}
	var ours, theirs []float64
	for epoch := range *turns + 1 {
		here.Do("cache", "evict", "d")
		before, begin := wireOf(here), time.Now()
		here.Must("sh", "-c", `cat "$0"/batch-?????? >/dev/null`, fmt.Sprintf("%s/datasets/d@epoch=%d,order=full/rank-0", here.Mount(), epoch))
		mine := size / time.Since(begin).Seconds()
		if came := wireOf(here) - before; came < size {
			check(fmt.Errorf("of %d bytes %.0f came over the link: the rest was here", int64(size), came))
		}
		out, err := hosts[1].Command(ctx, "iperf3", "-c", hosts[0].Name, "-R", "-n", strconv.Itoa(size), "-P", "4", "-J").Output() // a node has as many connections to another
		check(err)
		if epoch == 0 {
			continue // connections are made
		}
		ours, theirs = append(ours, mine), append(theirs, iperfSpeed(out))
		o.values = append(o.values, mine/theirs[len(theirs)-1])
	}
	o.note = fmt.Sprintf("%.1f MB/s against %.1f", middle(ours)/1e6, middle(theirs)/1e6)
	return missed(o)
}

// iperfSpeed is the bytes per second that iperf3 says it has had.
func iperfSpeed(out []byte) float64 {
	var said struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	check(json.Unmarshal(out, &said))
	return said.End.Received.BitsPerSecond / 8
}

// beyond is an epoch of order=full over four times what all caches of the cluster have,
// where each record of 64 KiB is fetched by itself, and one of the widest order=window:N
// for which chunks are fetched whole, as `dataset show` says.
func beyond(b *bench) (misses int) {
	s := b.site("32MiB", 16*siteRecord)
	said := s.Nodes[0].Do("dataset", "show", "d")
	_, rest, ok := strings.Cut(said, "window:")
	if !ok {
		check(fmt.Errorf("no window is named where the shuffle is wider than all caches: %s", said))
	}
	window := "window:" + rest[:strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })]
	var took, bytes [2][]float64
	for turn := range *turns {
		for i, order := range []string{"full", window} {
			s.Restart()
			before, _ := s.received()
			took[i] = append(took[i], s.epoch(b, fmt.Sprintf("d@order=%s,epoch=%d", order, math.MaxUint32+turn)))
			after, _ := s.received()
			bytes[i] = append(bytes[i], (after-before)/siteBytes)
		}
	}
	o := outcome{name: "cluster, epoch of " + window + ", data four times all caches / order=full", target: 1, atMost: true}
	for i := range took[0] {
		o.values = append(o.values, took[1][i]/took[0][i])
	}
	o.note = fmt.Sprintf("%.1f s against %.1f; bytes from HDFS for each of the dataset's %.3f against %.3f", middle(took[1]), middle(took[0]), middle(bytes[1]), middle(bytes[0]))
	return missed(o, outcome{name: "the same, bytes from HDFS / all, " + window, values: bytes[1], target: 2.02, atMost: true}) // with runs of a chunk each is of two
}
