package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A busyGroup is three daemons, one of which has batches ready, and readers of a
// queue on another: each line that they read is a write to the log that a majority
// has on disk.
type busyGroup struct {
	*daemon.Team
	leader, writer *daemon.Place
	others         []*daemon.Place
	ready, local   string // batches, and as many bytes in files on a tmpfs
}

// writers are how many readers a queue has: more of them write no more.
const writers = 16

func (b *bench) busyGroup() *busyGroup {
	s := b.on("group")
	c := cluster.Bare(s)
	g := &busyGroup{Team: daemon.NewTeam(s, filepath.Join(b.root, "bin/rankfs"), c.Hosts()[:3], "--ram", "256MiB")}
	leader, others := g.Leader()
	g.leader, g.writer, g.others = leader, others[0], others
	eventually.Within(s, time.Minute, "three voters", func() bool { return g.voters() == 3 })
	leader.Do("dataset", "create", "cycle", "--source", "file:"+b.data("cycle.bin", "fixed", "-n", "1024", "-size", "65536"), "--as", "fixed:65536", "--batch", "16")
	leader.Do("dataset", "create", "queue", "--source", "file:"+b.data("queue.bin", "fixed", "-n", "200000", "-size", "8"), "--as", "fixed:8", "--batch", "1")
	g.Await("queue")
	g.ready, g.local = leader.Mount()+"/datasets/cycle/rank-0", filepath.Join(b.shm, "rank-0")
	read(glob(b.data("cycle.bin"))...)
	check(os.MkdirAll(g.local, 0o700))
	leader.Must("sh", "-c", `cp "$0"/batch-?????? "$1"`, g.ready, g.local)
	return g
}

func (g *busyGroup) voters() (n int) {
	var s struct {
		Cluster struct{ Nodes []struct{ Voter bool } }
	}
	g.leader.Status(&s)
	for _, m := range s.Cluster.Nodes {
		if m.Voter {
			n++
		}
	}
	return n
}

// applied is the index of the last log entry that the leader applied.
func (g *busyGroup) applied() float64 {
	var s struct{ Cluster struct{ Applied float64 } }
	g.leader.Status(&s)
	return s.Cluster.Applied
}

// A latency is that of opening, mapping and closing ready files, in microseconds.
type latency struct{ p50, p99 []float64 }

func (g *busyGroup) cycle(b *bench, l *latency, dir string) {
	out := g.leader.Must(filepath.Join(b.root, "test/mpi/bin/cycle"), "-n", "64", "-r", "200", dir)
	l.p50, l.p99 = append(l.p50, value(out, "p50_ns")/1000), append(l.p99, value(out, "p99_ns")/1000)
}

// write has the log written to until stop is called.
func (g *busyGroup) write(epoch, niceness int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	for range writers {
		cmd := g.writer.Command(ctx, "nice", "-n", fmt.Sprint(niceness), "cat", fmt.Sprintf("%s/datasets/queue@epoch=%d/rank-0/queue", g.writer.Mount(), epoch))
		done.Go(func() { _ = cmd.Run() }) // it is killed
	}
	stop = func() { cancel(); done.Wait() }
	before := g.applied()
	if err := within("the readers of a queue write", func() bool { return g.applied() >= before+500 }); err != nil {
		stop()
		check(err)
	}
	return stop
}

// opensUnderWrites compares opens of ready batches on the leader's host while the
// group writes as fast as it can with such opens while it does nothing. What files
// of a tmpfs suffer from the same writes is not the group's doing but that of
// three hosts on one processor. So there is a second row, in which what belongs to
// the other two leaves the processor to the leader's, as if it had its own.
func opensUnderWrites(b *bench) (misses int) {
	g := b.busyGroup()
	epoch := 0
	for _, alone := range []bool{true, false} {
		o := outcome{name: "open of a ready batch while the group writes / idle, p99", target: 1.2, atMost: true}
		niceness := 0
		if alone {
			o.name, niceness = o.name+", others nice", 19
		}
		for _, n := range g.others {
			nice(n.PID(), niceness)
		}
		var idle, busy, localIdle, localBusy latency
		var writes, cores []float64
		for i := range *turns {
			g.cycle(b, &idle, g.ready)
			g.cycle(b, &localIdle, g.local)
			stop := g.write(epoch, niceness)
			epoch++
			before, used, begin := g.applied(), processor(g.leader.PID()), time.Now()
			g.cycle(b, &busy, g.ready)
			g.cycle(b, &localBusy, g.local)
			took := time.Since(begin).Seconds()
			writes, cores = append(writes, (g.applied()-before)/took), append(cores, (processor(g.leader.PID())-used)/took)
			stop()
			o.values = append(o.values, busy.p99[i]/idle.p99[i])
		}
		o.note = fmt.Sprintf("%.0f us against %.0f, p50 %.0f against %.0f; %.0f writes a second, for which the leader took %.2f cores; files of a tmpfs: %.0f us against %.0f, p50 %.0f against %.0f",
			middle(busy.p99), middle(idle.p99), middle(busy.p50), middle(idle.p50), middle(writes), middle(cores),
			middle(localBusy.p99), middle(localIdle.p99), middle(localBusy.p50), middle(localIdle.p50))
		misses += missed(o)
	}
	return misses
}

// deaths are nodes that are killed one after the other, and what is timed: how long it takes
// from the moment in which a majority is up again until it acknowledges a command.
type deaths struct {
	name  string
	who   []int // 0 is the one that leads before the first dies
	known bool  // the next one dies when that is known, not a second later
	back  bool  // without the last one there is no majority, and the first one is started then
}

// leaderAfterKill measures that of three nodes.
func leaderAfterKill(b *bench) int {
	return b.leaderAfter(3,
		deaths{"the death of the leader to the next one, of three nodes", []int{0}, false, false},
		deaths{"the start of a follower that was taken for dead, the leader being killed", []int{1, 0}, true, true},
		deaths{"the start of a follower, the leader being killed a second after it", []int{1, 0}, false, true},
		deaths{"the start of the leader, another being killed a second after it", []int{0, 1}, false, true})
}

func leaderOfFiveAfterKill(b *bench) int {
	return b.leaderAfter(5,
		deaths{"the death of another, a second after the leader's, of five nodes", []int{0, 1}, false, false},
		deaths{"the death of the leader, a second after a follower's", []int{1, 0}, false, false},
		deaths{"the start of the leader, two others being killed a second and two after it", []int{0, 1, 2}, false, true})
}

// leaderAfter has nodes die, again and again, and all be well in between.
func (b *bench) leaderAfter(nodes int, kinds ...deaths) int {
	s := b.on("leader after kill")
	m := daemon.NewTeam(s, filepath.Join(b.root, "bin/rankfs"), cluster.Five(s).Hosts()[:nodes], "--ram", "64MiB")
	var all []outcome
	for _, d := range kinds {
		o := outcome{name: "from " + d.name, unit: "s", target: 5, atMost: true}
		for range *turns {
			o.values = append(o.values, d.happen(m).Seconds())
		}
		all = append(all, o)
	}
	return missed(all...)
}

// happen kills, times and starts again.
func (d deaths) happen(m *daemon.Team) time.Duration {
	leader, others := m.Leader()
	eventually.Within(m.T, time.Minute, "all vote and are up", func() bool {
		k := m.Members(others[0])
		return k.Voters() == len(m.Nodes) && k.Up() == len(m.Nodes) && k.Leader != ""
	})
	all := append([]*daemon.Place{leader}, others...)
	left := all[len(all)-1] // lives
	for i, n := range d.who {
		all[n].Kill()
		switch {
		case i == len(d.who)-1:
		case d.known:
			eventually.Within(m.T, time.Minute, "it is taken for dead", func() bool { return m.Members(left).Up() == len(all)-1-i })
		default:
			time.Sleep(time.Second)
		}
	}
	begun, gone := time.Now(), d.who
	if d.back {
		all[gone[0]].Start()
		gone = gone[1:]
	}
	eventually.Done(m.T, time.Minute, "a leader acknowledges a command", func() error {
		_, err := left.Rankfs("token", "create")
		return err
	})
	took := time.Since(begun)
	for _, n := range gone {
		all[n].Start()
	}
	return took
}
