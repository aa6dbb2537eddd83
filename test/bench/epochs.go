package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// A site is a job's: a dataset in a real HDFS, two replicas of each block, and a
// daemon on each of the four hosts that have them. Two ranks on each read 16 MiB
// a step together, each record checked.
type site struct {
	*daemon.Team
	tb        *fakeTB
	cluster   *cluster.Cluster
	hosts     []*cluster.Host
	agent     string
	checksums string
}

const (
	siteRecords = 131072
	siteRecord  = 4096
	siteBytes   = siteRecords * siteRecord
	siteBlock   = 1 << 20
	siteBatch   = 512 << 10
	siteView    = "ranks=8,batch=512,order=full,seed=5"
)

func (b *bench) site(ram string, record int) *site {
	s := &site{tb: b.on("site")}
	s.cluster = cluster.Wide(s.tb)
	s.hosts = s.cluster.DataNodes()
	dir := s.put(record)
	s.agent = s.cluster.Agent(s.tb)
	s.Team = daemon.NewTeam(s.tb, filepath.Join(b.root, "bin/rankfs"), s.hosts,
		"--ram", ram, "--hadoop-conf", s.cluster.ConfByFile())
	s.Nodes[0].Do("dataset", "create", "d", "--source",
		fmt.Sprintf("hdfs://%s%s?as=fixed:%d", s.cluster.Nameservice(), dir, record),
		"--ranks", "8", "--batch", fmt.Sprint(siteBatch/record), "--order", "full", "--seed", "5")
	s.Await("d")
	return s
}

// put writes the dataset, each host a part of it.
func (s *site) put(record int) (dir string) {
	dir = s.cluster.Dir(s.tb)
	random := rand.NewChaCha8([32]byte{})
	part := make([]byte, siteBytes/len(s.hosts))
	var sums bytes.Buffer
	for i, h := range s.hosts {
		random.Read(part)
		for at := 0; at < len(part); at += record {
			fmt.Fprintf(&sums, "%016x\n", xxhash.Sum64(part[at:at+record]))
		}
		name := fmt.Sprintf("%s/%d", dir, i)
		h.Put(s.tb, name, part, 2, siteBlock)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		check(s.cluster.WaitReplicas(ctx, name, 2))
		cancel()
	}
	s.checksums = filepath.Join(s.tb.TempDir(), "checksums")
	check(os.WriteFile(s.checksums, sums.Bytes(), 0o600))
	return dir
}

// epoch has the job read all of a view, and returns how long its slowest rank
// took from the first open on. Ranks wait for one another by spinning; they are nice,
// so that a process with work gets the processor before them, as on hosts of its own.
func (s *site) epoch(b *bench, view string) (seconds float64) {
	args := append([]string{"-n", "10", filepath.Join(b.root, "test/mpi/bin/map_verify")}, s.Dirs(view)...)
	out, err := s.MPI(s.agent, 2, "nice", append(args, s.checksums)...)
	if err == nil && !strings.Contains(out, "map_verify OK ranks=8") {
		err = fmt.Errorf("%s", out)
	}
	check(err)
	return value(out, "seconds")
}

// sourced is the part of a status about bytes from datanodes.
type sourced struct {
	HDFS struct{ Bytes, Local, Files float64 }
}

func (s *site) received() (bytes, local float64) {
	for _, n := range s.Nodes {
		var r sourced
		n.Status(&r)
		bytes, local = bytes+r.HDFS.Bytes, local+r.HDFS.Local
	}
	return bytes, local
}

// locality reports where the bytes of an epoch are read, and how often they
// leave HDFS.
func locality(b *bench) int {
	s := b.site("512MiB", siteRecord)
	before, localBefore := s.received()
	wire := s.wire()
	s.epoch(b, "d")
	bytes, local := s.received()
	crossed := sum(s.wire()) - sum(wire)
	near := s.near()
	v, err := meta.View{Dataset: "d"}.With(siteView)
	check(err)
	var names []string
	for _, h := range s.hosts {
		names = append(names, h.Name)
	}
	most := newJob(s.Nodes[1].Must("cat", s.Dirs("d")[1]+"/chunks"), v, siteRecords, names).optimum(len(names)) * siteRecord
	return missed(
		outcome{
			name: "bytes read where a replica is, order=full, 4 nodes / all", values: []float64{near / siteBytes}, target: 0.9,
			note: fmt.Sprintf("%.4f of the bytes came over the network; from HDFS, %.4f were from the own host",
				crossed/siteBytes, (local-localBefore)/(bytes-before)),
		},
		outcome{
			name: "the same / optimum of a maximum flow", values: []float64{near / float64(most)}, target: 0.97,
			note: fmt.Sprintf("%.4f of all bytes", float64(most)/siteBytes),
		},
		outcome{
			name: "source bytes / dataset bytes, an epoch on 4 nodes", values: []float64{(bytes - before) / siteBytes},
			target: 1.02, atMost: true,
		},
	)
}

// near adds up bytes of batches of which the host has a replica that read them,
// as each daemon says of the ranks that were there, whatever was planned.
func (s *site) near() (near float64) {
	const attribute = "user.rankfs.local"
	for i, n := range s.Nodes {
		for rank := 2 * i; rank < 2*i+2; rank++ {
			out := n.Must("sh", "-c", `getfattr --absolute-names -n "$0" "$1"/batch-??????`, attribute, fmt.Sprintf("%s/rank-%d", s.Dirs("d")[i], rank))
			near += addUp(out, attribute+`="%f"`)
		}
	}
	return near
}

// addUp adds up the numbers of the lines that have that form.
func addUp(text, form string) (total float64) {
	for line := range strings.Lines(text) {
		var v float64
		if n, _ := fmt.Sscanf(line, form, &v); n == 1 {
			total += v
		}
	}
	return total
}

// wire is the bytes that each host was sent over the network so far.
func (s *site) wire() (bytes []float64) {
	for _, n := range s.Nodes {
		bytes = append(bytes, wireOf(n))
	}
	return bytes
}

func wireOf(n *daemon.Place) (bytes float64) {
	text := n.Must("cat", "/proc/net/dev")
	_, rest, ok := strings.Cut(text, "eth0:")
	if !ok {
		check(fmt.Errorf("no eth0 on %s: %s", n.Host.Name, text))
	}
	_, err := fmt.Sscan(rest, &bytes)
	check(err)
	return bytes
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// The links of the second study. With four hosts on two cores the first of them
// may be faster than the processor.
var rates = []struct {
	name   string
	bytes  int64   // a second
	target float64 // of an epoch's time
}{{"1 Gbit/s", 125e6, 0.5}, {"200 Mbit/s", 25e6, 0.6}}

// links compares epochs of ranks that read what is near with those of ranks that
// have fixed shares of the same steps, wherever these are. Both sides fetch each
// chunk from HDFS once, where a replica is, and send its records to the nodes that
// read them; so the difference is the network's alone. The first epoch of a turn finds
// no batch and no chunk in memory, the second the chunks.
func links(b *bench) (misses int) {
	s := b.site("512MiB", siteRecord)
	number := 0
	for _, rate := range rates {
		for _, h := range s.hosts {
			check(h.LinkRate(rate.bytes))
		}
		turn := func(assign string) [2]effort {
			s.Restart()
			var both [2]effort
			for i := range both {
				number++
				both[i] = s.measure(func() float64 {
					return s.epoch(b, fmt.Sprintf("d@epoch=%d,assign=%s", number, assign))
				}, rate.bytes)
			}
			return both
		}
		var ours, theirs [2][]effort
		for range *turns {
			o, t := turn("local"), turn("strict")
			for i := range o {
				ours[i], theirs[i] = append(ours[i], o[i]), append(theirs[i], t[i])
			}
		}
		for i, when := range []string{"first", "later"} {
			misses += missed(contrast(fmt.Sprintf("%s epoch, links of %s / static ranks, no locality", when, rate.name), rate.target, ours[i], theirs[i]))
		}
		for _, h := range s.hosts {
			check(h.LinkRate(0))
		}
	}
	return misses
}

// An effort is the time of an epoch, and its use of processors and network.
type effort struct {
	seconds   float64
	processor float64 // share of all cores that was busy, without nice processes
	wire      float64 // share of the time that the busiest link needed
}

// measure is the effort of a run, its start included.
func (s *site) measure(run func() float64, rate int64) effort {
	before, busy, begin := s.wire(), busySeconds(), time.Now()
	e := effort{seconds: run()}
	e.processor = (busySeconds() - busy) / time.Since(begin).Seconds() / cores()
	for i, now := range s.wire() {
		e.wire = max(e.wire, (now-before[i])/float64(rate)/e.seconds)
	}
	return e
}

func contrast(name string, target float64, ours, theirs []effort) outcome {
	o := outcome{name: name, target: target, atMost: true}
	for i := range ours {
		o.values = append(o.values, ours[i].seconds/theirs[i].seconds)
	}
	of := func(all []effort, get func(effort) float64) float64 {
		var v []float64
		for _, e := range all {
			v = append(v, get(e))
		}
		return middle(v)
	}
	words := func(all []effort) string {
		return fmt.Sprintf("%.2f s (busiest link %.0f%%, processor %.0f%%)", of(all, func(e effort) float64 { return e.seconds }),
			100*of(all, func(e effort) float64 { return e.wire }), 100*of(all, func(e effort) float64 { return e.processor }))
	}
	o.note = words(ours) + " against " + words(theirs)
	return o
}
