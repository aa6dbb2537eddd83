package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// gigabit is the bytes a second of a link of 1 Gbit/s.
const gigabit = 125e6

// poolNodes are daemons with a shuffle pool, on hosts of their own.
type poolNodes struct {
	*daemon.Team
	b     *bench
	s     *fakeTB
	c     *cluster.Cluster
	hosts []*cluster.Host
	jobs  int
}

func (b *bench) poolNodes(name string, hosts int) *poolNodes {
	s := b.on(name)
	c := cluster.Bare(s)
	p := &poolNodes{b: b, s: s, c: c, hosts: c.Hosts()[:hosts]}
	p.Team = daemon.NewTeam(s, filepath.Join(b.root, "bin/rankfs"), p.hosts, "--ram", "1536MiB", "--pool-ram", "768MiB")
	for _, n := range p.Nodes {
		eventually.Within(s, time.Minute, "every node knows all others", func() bool { return len(p.Members(n).Nodes) == hosts })
	}
	return p
}

func (p *poolNodes) limit(rate int64) {
	for _, h := range p.hosts {
		check(h.LinkRate(rate))
	}
}

// stage makes a stage in a job of its own; its path is that below each mount.
func (p *poolNodes) stage(spec string) (path string, remove func()) {
	p.jobs++
	job := fmt.Sprint("shuffle/job", p.jobs)
	path = job + "/stage"
	p.Nodes[0].Must("sh", "-euc", `mkdir -p "$0"; echo "$1" > "$0/spec"`, p.at(0, path), spec)
	return path, func() {
		p.Nodes[0].Do("shuffle", "rm", strings.TrimPrefix(job, "shuffle/"))
		for _, n := range p.Nodes {
			eventually.Within(p.s, time.Minute, "no file of a job that was removed is left", func() bool {
				return n.Must("sh", "-c", `grep -c "$0" /proc/self/mounts || true`, n.Dir+"/state/pool") == "0\n"
			})
		}
	}
}

func (p *poolNodes) at(node int, path string) string { return p.Nodes[node].Mount() + "/" + path }

// shuffle has test/mpi/shuffle work on a node.
func (p *poolNodes) shuffle(node int, stage, mode string, args ...string) string {
	out, err := p.try(node, stage, mode, args...)
	check(err)
	return out
}

func (p *poolNodes) try(node int, stage, mode string, args ...string) (string, error) {
	program := filepath.Join(p.b.root, "test/mpi/bin/shuffle")
	return p.Nodes[node].Tool(program, append(args, mode, p.at(node, stage))...)
}

// everywhere has it write so many maps on each node, all at the same time.
func (p *poolNodes) everywhere(stage string, maps int, args ...string) {
	errs := make([]error, len(p.Nodes))
	daemon.Each(p.Nodes, func(i int, _ *daemon.Place) {
		_, errs[i] = p.try(i, stage, "write", append([]string{"-m", strconv.Itoa(maps), "-f", strconv.Itoa(i * maps)}, args...)...)
	})
	check(errors.Join(errs...))
}

// crossed is the bytes that all hosts were sent so far.
func (p *poolNodes) crossed() (bytes float64) {
	for _, n := range p.Nodes {
		bytes += wireOf(n)
	}
	return bytes
}

// iperf is the bytes a second that iperf3 brings from the first host to the second.
func (p *poolNodes) iperf(bytes int) float64 {
	out, err := p.hosts[1].Command(context.Background(), "iperf3", "-c", p.hosts[0].Name, "-R", "-n", strconv.Itoa(bytes), "-P", "4", "-J").Output()
	check(err)
	return iperfSpeed(out)
}

func (p *poolNodes) serveIperf() {
	ctx, stop := context.WithCancel(context.Background())
	server := p.hosts[0].Command(ctx, "iperf3", "-s")
	check(server.Start())
	p.s.Cleanup(func() {
		stop()
		server.Wait()
	})
	eventually.Within(p.s, time.Minute, "iperf3 answers", func() bool {
		conn, err := p.hosts[1].DialContext(ctx, "tcp", p.hosts[0].IP+":5201")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// poolLinks compares a second copy of what is written, over a link of 1 Gbit/s, and a part
// whose maps are all on another node, with what iperf3 brings over it.
func poolLinks(b *bench) (misses int) {
	const maps, size = 16, 16 * mib
	p := b.poolNodes("links", 2)
	p.limit(gigabit)
	p.serveIperf()
	args := []string{"-m", strconv.Itoa(maps), "-b", strconv.Itoa(size)}
	written := outcome{name: "pool, copies=2 over 1 Gbit/s, TLS / iperf3", target: 0.95}
	read := outcome{name: "pool, a part of another node's maps over 1 Gbit/s, TLS / iperf3", target: 0.95}
	for turn := range *turns + 1 {
		there := p.iperf(maps * size)
		stage, remove := p.stage(fmt.Sprintf("maps=%d copies=2", maps))
		before := wireOf(p.Nodes[1])
		w := maps * size / value(p.shuffle(0, stage, "write", args...), "seconds")
		p.mustCross(p.Nodes[1], before, maps*size)
		remove()
		stage, remove = p.stage(fmt.Sprintf("maps=%d copies=1", maps))
		p.shuffle(0, stage, "write", args...)
		before = wireOf(p.Nodes[1])
		r := maps * size / value(p.shuffle(1, stage, "read", args...), "seconds")
		p.mustCross(p.Nodes[1], before, maps*size)
		remove()
		if turn == 0 {
			continue // connections are made
		}
		written.values, read.values = append(written.values, w/there), append(read.values, r/there)
		written.note = fmt.Sprintf("%.1f MB/s against %.1f, the last time", w/1e6, there/1e6)
		read.note = fmt.Sprintf("%.1f MB/s against %.1f, the last time", r/1e6, there/1e6)
	}
	return missed(written, read)
}

// poolCompressed compares a second copy of text over a link of 1 Gbit/s, compressed between nodes,
// with the same as it is: its time, and what goes over the link beside the bytes of the maps.
func poolCompressed(b *bench) (misses int) {
	const maps, size = 16, 16 * mib
	p := b.poolNodes("compressed", 2)
	p.limit(gigabit)
	codecs := []string{"none", "lz4", "zstd"}
	var times, bytes []outcome
	for _, by := range codecs {
		times = append(times, outcome{name: "pool, text with copies=2 over 1 Gbit/s, compress=" + by + " / none", target: 1, atMost: true})
		bytes = append(bytes, outcome{name: "pool, bytes over the link for that / of the maps", target: 1.02, atMost: true})
	}
	for turn := range *turns + 1 {
		plain := 0.0
		for i, by := range codecs {
			stage, remove := p.stage(fmt.Sprintf("maps=%d copies=2 compress=%s", maps, by))
			before := wireOf(p.Nodes[1])
			took := value(p.shuffle(0, stage, "write", "-t", "-m", strconv.Itoa(maps), "-b", strconv.Itoa(size)), "seconds")
			went := wireOf(p.Nodes[1]) - before
			remove()
			if i == 0 {
				plain = took
			}
			if turn == 0 {
				continue // connections are made
			}
			times[i].values = append(times[i].values, took/plain)
			times[i].note = fmt.Sprintf("%.2f s against %.2f, the last time", took, plain)
			bytes[i].values = append(bytes[i].values, went/(maps*size))
		}
	}
	return missed(append(times[1:], bytes...)...)
}

func (p *poolNodes) mustCross(n *daemon.Place, before float64, bytes float64) {
	if came := wireOf(n) - before; came < bytes {
		check(fmt.Errorf("of %.0f bytes %.0f came over the link", bytes, came))
	}
}

// poolExchanges compares an all-to-all of four ranks on as many hosts, by the pool with one
// and with two copies, and by MPI over TCP.
func poolExchanges(b *bench) (misses int) {
	p := b.poolNodes("exchange", 4)
	p.limit(gigabit)
	agent, program := p.c.Agent(p.s), filepath.Join(b.root, "test/mpi/bin/exchange")
	sum := ""
	run := func(args ...string) float64 {
		out, err := p.MPI(agent, 1, program, append([]string{"-s", strconv.Itoa(256 * mib)}, args...)...)
		check(err)
		if got := word(out, "sum"); sum != "" && got != sum {
			check(fmt.Errorf("the sides read different bytes: %s", out))
		} else {
			sum = got
		}
		return value(out, "seconds")
	}
	one := outcome{name: "pool, all-to-all of 4 ranks x 256 MiB over 1 Gbit/s, copies=1 / MPI_Alltoallv", target: 1.1, atMost: true}
	two := outcome{name: "pool, the same, copies=2 / MPI_Alltoallv", target: 1.9, atMost: true}
	pool := func(copies string) float64 {
		job, remove := p.stage("maps=1") // the exchange makes a stage beside it
		defer remove()
		args := []string{"-c", copies, "pool"}
		for i := range p.Nodes {
			args = append(args, p.at(i, strings.TrimSuffix(job, "stage")+"exchange"))
		}
		return run(args...)
	}
	for range *turns {
		theirs := run("mpi")
		a, c := pool("1"), pool("2")
		one.values, two.values = append(one.values, a/theirs), append(two.values, c/theirs)
		one.note = fmt.Sprintf("%.2f s against %.2f, the last time", a, theirs)
		two.note = fmt.Sprintf("%.2f s against %.2f, the last time", c, theirs)
	}
	return missed(one, two)
}

// poolCommits is how many maps of a few bytes three voters agree on in a second.
func poolCommits(b *bench) (misses int) {
	const each = 4000
	p := b.poolNodes("commits", 3)
	eventually.Within(p.s, time.Minute, "three voters", func() bool { return p.Members(p.Nodes[0]).Voters() == 3 })
	o := outcome{name: "pool, commits a second of three nodes, all of which vote", unit: "/s", target: 2000}
	for turn := range *turns + 1 {
		stage, remove := p.stage(fmt.Sprintf("maps=%d copies=1", each*len(p.Nodes)))
		took := seconds(func() { p.everywhere(stage, each, "-b", "64", "-p", "16") })
		if state := p.Nodes[0].Must("cat", p.at(0, stage)+"/state"); !strings.Contains(state, "sealed") {
			check(fmt.Errorf("not all maps are committed: %s", state))
		}
		remove()
		if turn > 0 {
			o.values = append(o.values, float64(each*len(p.Nodes))/took)
		}
	}
	return missed(o)
}

// poolBytes is what goes over the network beside what has to: a copy of each map, or the
// pieces of maps that a reader's node has not.
func poolBytes(b *bench) (misses int) {
	const nodes, maps, size = 4, 8, 8 * mib // maps of each node
	p := b.poolNodes("bytes", nodes)
	written := outcome{name: "pool, bytes to other nodes, copies=2 / bytes of the maps", target: 1.02, atMost: true}
	read := outcome{name: "pool, bytes to the reader's node / those of maps on other nodes", target: 1.02, atMost: true}
	args := []string{"-b", strconv.Itoa(size), "-r", strconv.Itoa(nodes)}
	for range *turns {
		stage, remove := p.stage(fmt.Sprintf("maps=%d parts=%d copies=2", nodes*maps, nodes))
		before := p.crossed()
		p.everywhere(stage, maps, args...)
		written.values = append(written.values, (p.crossed()-before)/(nodes*maps*size))
		remove()
		stage, remove = p.stage(fmt.Sprintf("maps=%d parts=%d copies=1", nodes*maps, nodes))
		p.everywhere(stage, maps, args...)
		before = wireOf(p.Nodes[1])
		p.Nodes[1].Must("sh", "-c", `cd "$0"; cat part-000000 part-000001 part-000002 part-000003 >/dev/null`, p.at(1, stage))
		read.values = append(read.values, (wireOf(p.Nodes[1])-before)/((nodes-1)*maps*size))
		remove()
	}
	return missed(written, read)
}

// poolKilled is what a reader notices when a node that has maps of its parts is gone, with
// its link, so that no other node is told.
func poolKilled(b *bench) (misses int) {
	const nodes, maps, size, parts = 4, 4, 16 * mib, 64
	stall := outcome{name: "pool, longest read of a part of 4 MiB while a node is lost", unit: "s", target: 6, atMost: true}
	again := outcome{name: "pool, maps that run again for that", target: 0, atMost: true}
	lost := outcome{name: "pool, bytes that are lost or other ones", target: 0, atMost: true}
	for range *turns {
		p := b.poolNodes("killed", nodes)
		stage, _ := p.stage(fmt.Sprintf("maps=%d parts=%d copies=2", nodes*maps, parts)) // it goes with the hosts
		p.everywhere(stage, maps, "-b", strconv.Itoa(size), "-r", strconv.Itoa(parts))
		args := []string{"-p", "1", "-m", strconv.Itoa(nodes * maps), "-r", strconv.Itoa(parts)}
		want := p.shuffle(2, stage, "read", args...)
		p.limit(gigabit)
		type result struct {
			out string
			err error
		}
		reading := make(chan result, 1)
		go func() {
			out, err := p.try(1, stage, "read", args...)
			reading <- result{out, err}
		}()
		time.Sleep(300 * time.Millisecond)
		check(p.hosts[3].LinkDown())
		p.Nodes[3].Kill()
		r := <-reading
		check(r.err)
		got := r.out
		stall.values = append(stall.values, value(got, "longest_ns")/1e9)
		again.values = append(again.values, addUp(p.Nodes[1].Must("sh", "-c", `for m in "$0"/map-*; do getfattr --only-values -n user.rankfs.attempt $m; echo; done`, p.at(1, stage)), "%f"))
		missing := value(want, "bytes") - value(got, "bytes")
		if word(got, "sum") != word(want, "sum") {
			missing = max(missing, 1)
		}
		lost.values = append(lost.values, missing)
		stall.note = fmt.Sprintf("all parts in %.1f s", value(got, "seconds"))
		p.s.end()
	}
	return missed(stall, again, lost)
}
