package nodes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// inJob runs a script on a node, whose first argument is a job of the pool.
func inJob(n *daemon.Place, script string, args ...string) string {
	return n.Must("sh", append([]string{"-euc", script, "sh", n.Mount() + "/shuffle/job"}, args...)...)
}

// endJob removes the job, and waits until nodes have nothing of it.
func endJob(t *testing.T, nodes []*daemon.Place) {
	inJob(nodes[0], `rm -r "$1"`)
	jobless(t, nodes)
}

// jobless waits until nodes have no file of any job.
func jobless(t *testing.T, nodes []*daemon.Place) {
	t.Helper()
	for _, n := range nodes {
		eventually.Within(t, patience, "no file system of a job is left", func() bool {
			out, _ := n.Tool("sh", "-c", `grep -c "$0" /proc/self/mounts`, n.Dir+"/state/pool")
			return strings.TrimSpace(out) == "0"
		})
	}
}

// What has returned on one node holds on any other: jobs, specs, commits. Parts are the
// same bytes on each, also after a node that had maps is gone for good; those get another
// copy. What parts hold of fixed maps is the same on one, two and four nodes.
func TestPoolOfSeveralNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := gather(t, c, c.Hosts()[:4], "--pool-ram", "64MiB")
	nodes := m.Nodes
	nodes[0].Start()
	holdGolden(t, nodes[:1])
	token := m.Token(nodes[0], len(nodes))
	for _, joined := range [][]*daemon.Place{nodes[:2], nodes} {
		for _, n := range joined[len(joined)/2:] {
			m.Join(n, nodes[0], token)
		}
		holdGolden(t, joined)
	}
	sh := inJob
	defer func() { endJob(t, nodes[1:]) }()
	sh(nodes[0], `mkdir "$1"`)
	sh(nodes[1], `mkdir "$1/s"`)
	sh(nodes[2], `echo 'maps=8 parts=2 copies=2' > "$1/s/spec"`)
	sh(nodes[0], `: > "$1/s/.map-000000.9"`)
	sh(nodes[3], `! env printf maps=9 > "$1/s/spec" 2>/dev/null`) // there is an attempt
	sh(nodes[0], `rm "$1/s/.map-000000.9"`)
	var want strings.Builder
	for i := range 8 {
		text := fmt.Sprintf("map %d of node %d\n", i, i%4)
		want.WriteString(text)
		sh(nodes[i%4], `printf '%s' "$2" > "$1/s/.map-$3.0"
printf "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\\$(printf %o "${#2}")\0\0\0\0\0\0\0" > "$1/s/.map-$3.0.idx"
mv "$1/s/.map-$3.0" "$1/s/map-$3"`, text, fmt.Sprintf("%06d", i))
		if got := sh(nodes[(i+1)%4], `cat "$1/s/map-$2"`, fmt.Sprintf("%06d", i)); got != text {
			t.Errorf("map %d on another node: %q", i, got)
		}
	}
	for _, n := range nodes {
		if got := sh(n, `cat "$1/s/part-000001" "$1/s/part-000000"`); got != want.String() {
			t.Errorf("on %s: %q", n.Host.Name, got)
		}
	}
	state := func() string { return sh(nodes[1], `cat "$1/s/state"`) }
	// A node that is slow may get its copy later, from another.
	eventually.Within(t, patience, "with four nodes no copy is missing", func() bool {
		return strings.Contains(state(), "missing    0 copies")
	})
	id := m.Members(nodes[0]).Self
	nodes[0].Kill()
	eventually.Within(t, patience, "what the dead node had is read from its copies", func() bool {
		out, err := nodes[1].Tool("sh", "-c", `cat "$0/s/part-000001@maps=0-6"`, nodes[1].Mount()+"/shuffle/job")
		return err == nil && strings.HasPrefix(want.String(), out) && strings.Count(out, "\n") == 7
	})
	m.takesOut(nodes[1], id)
	eventually.Within(t, patience, "all maps have two copies again", func() bool {
		return strings.Contains(state(), "missing    0 copies")
	})
	if got := sh(nodes[3], `cat "$1/s/part-000001@maps=0-7"`); got != want.String() {
		t.Errorf("without the node: %q", got)
	}
	drained := m.Members(nodes[3]).Self
	eventually.Within(t, patience, "the removed node has no vote, and another is drained", func() bool {
		_, err := nodes[1].Rankfs("node", "drain", drained)
		return err == nil
	})
	if got := state(); !strings.Contains(got, "missing    0 copies") {
		t.Errorf("when a node is drained: %s", got)
	}
	nodes[1].Do("node", "drain", "--undo", drained)
	eventually.Within(t, patience, "no map has more copies than it should", func() bool {
		copies := 0
		for _, maps := range keptBy(t, nodes[1], "job/s") {
			copies += maps
		}
		return copies == 8*2
	})
}

// A job and a stage that were removed on one node are gone on another, whose kernel knew them,
// once it has heard of that; and those that are made anew there are the same on both.
func TestNamesThatAreRemovedElsewhere(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	nodes := newTeam(t, c, c.Hosts()[:2], "--pool-ram", "64MiB").Nodes
	defer func() { endJob(t, nodes) }()
	for i, removed := range []string{"job/s", "job", "job"} {
		here, there := nodes[i%2], nodes[(i+1)%2]
		inJob(here, `mkdir -p "$1/s"; echo "maps=$2" > "$1/s/spec"`, fmt.Sprint(i+1))
		want := fmt.Sprintf("maps=%d ", i+1)
		eventually.Within(t, patience, "the other node has the stage that was made", func() bool {
			return strings.Contains(inJob(there, `cat "$1/s/spec" 2>/dev/null || true`), want)
		})
		if i < 2 {
			inJob(here, `rm -r "$1/../$2"`, removed)
		} else {
			here.Do("shuffle", "rm", removed)
		}
		eventually.Within(t, patience, "the other node has heard that it is removed", func() bool {
			_, err := there.Tool("stat", there.Mount()+"/shuffle/"+removed)
			return err != nil
		})
	}
	inJob(nodes[1], `mkdir -p "$1/s"; echo maps=9 > "$1/s/spec"`)
	if got := inJob(nodes[0], `cat "$1/s/spec"`); !strings.Contains(got, "maps=9 ") {
		t.Errorf("on the other node the stage that was made anew has %q", got)
	}
}

// A copy whose bytes change is not given to a reader, on whichever node: another one serves,
// and one more is made.
func TestDamagedCopies(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	nodes := newTeam(t, c, c.Hosts()[:3], "--pool-ram", "64MiB").Nodes
	defer func() { endJob(t, nodes) }()
	inJob(nodes[0], `mkdir -p "$1/s"; echo 'maps=4 parts=1 copies=2' > "$1/s/spec"
for m in 0 1 2 3; do seq "$m" 4 100000 > "$1/s/.map-00000$m.0"; mv "$1/s/.map-00000$m.0" "$1/s/map-00000$m"; done`)
	sum := func(n *daemon.Place, what string) string { return inJob(n, `cat "$1"/s/`+what+` | sha256sum`) }
	all := sum(nodes[0], "map-*")
	for i, n := range nodes {
		for k, at := range []string{"0", "70000"} {
			ranged := fmt.Sprintf("part-000000@maps=%d-3", i) // a part that was read has no need of copies: these are others
			if k == 1 {
				ranged = fmt.Sprintf("part-000000@maps=0-%d", i)
			}
			from, to, _ := strings.Cut(strings.TrimPrefix(ranged, "part-000000@maps="), "-")
			want := inJob(nodes[0], `cat $(seq -f "$1/s/map-%06g" "$2" "$3") | sha256sum`, from, to)
			// All that are on the node, which may be none but on the first, which wrote them.
			out, err := n.Tool("sh", "-euc", `for f in "$1"/pool/*/*/maps/00000?.*; do
    case $f in *.idx|*\*) ;; *) chmod u+w "$f"; printf '!' | dd of="$f" bs=1 seek="$2" conv=notrunc status=none; echo "$f";; esac; done`, "sh", n.Dir+"/state", at)
			if err != nil || i+k == 0 && strings.Count(out, "\n") != 4 {
				t.Fatalf("damage the copies of %s: %v: %s", n.Host.Name, err, out)
			}
			for _, reader := range nodes {
				if got := sum(reader, ranged); got != want {
					t.Errorf("copies on %s damaged: on %s %s has %s, want %s", n.Host.Name, reader.Host.Name, ranged, got, want)
				}
			}
			for _, reader := range nodes { // that node finds all that is damaged
				if got := sum(reader, "map-*"); got != all {
					t.Errorf("copies on %s damaged: on %s the maps have %s, want %s", n.Host.Name, reader.Host.Name, got, all)
				}
			}
			eventually.Within(t, patience, "all maps have two copies again", func() bool {
				return strings.Contains(inJob(nodes[1], `cat "$1/s/state"`), "missing    0 copies")
			})
		}
	}
}

// What was put on one node is what its name stands for on all nodes from then on, and
// outlives the node; what is removed on one is gone on all.
func TestBlobsOfSeveralNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "64MiB")
	nodes := m.Nodes
	sh := func(n *daemon.Place, script string, args ...string) string {
		return n.Must("sh", append([]string{"-euc", `cd "$1"; ` + script, "sh", n.Mount() + "/shuffle/job/blob"}, args...)...)
	}
	nodes[0].Must("mkdir", nodes[0].Mount()+"/shuffle/job")
	defer endJob(t, nodes[1:])
	for i := range 8 {
		text := fmt.Sprintf("put %d on node %d\n", i, i%4)
		sh(nodes[i%4], `printf '%s' "$2" > .k; mv .k k`, text)
		for _, n := range nodes {
			if got := sh(n, `cat k; ls -A`); got != text+"k\n" {
				t.Errorf("put %d, on %s: %q", i, n.Host.Name, got)
			}
		}
	}
	sh(nodes[3], `mkdir .d; for i in 0 1 2 3 4; do printf $i > .d/$i; done; mv .d d`)
	sh(nodes[2], `rm k; rm d/4`)
	for _, n := range nodes {
		if got := sh(n, `ls -A; cat d/*; ! cat k 2>/dev/null`); got != "d\n0123" {
			t.Errorf("on %s: %q", n.Host.Name, got)
		}
	}
	var all sync.WaitGroup
	for i, n := range nodes { // each puts the same names, all at a time
		all.Go(func() {
			sh(n, `for i in 0 1 2 3 4 5 6 7; do printf "$2" > .x$i; mv .x$i x$i; done`, fmt.Sprint(i))
		})
	}
	all.Wait()
	want := sh(nodes[0], `cat x*; ls`)
	for _, n := range nodes {
		if got := sh(n, `cat x*; ls`); got != want {
			t.Errorf("on %s: %q, on the first %q", n.Host.Name, got, want)
		}
	}
	id := m.Members(nodes[0]).Self
	nodes[0].Kill()
	m.takesOut(nodes[1], id)
	eventually.Within(t, patience, "what the dead node had is read from its copies", func() bool {
		out, err := nodes[1].Tool("sh", "-c", `cd "$0"; cat x*; ls`, nodes[1].Mount()+"/shuffle/job/blob")
		return err == nil && out == want
	})
}

// Three voters agree on maps that several stages of all nodes commit at a time, in little
// room of the log.
func TestRoomOfCommits(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3], "--pool-ram", "64MiB")
	eventually.Within(t, patience, "three voters", func() bool { return m.Members(m.Nodes[0]).Voters() == 3 })
	const stages, each = 24, 20
	m.Nodes[0].Must("sh", "-euc", `mkdir "$0"; for i in $(seq 0 $(($1-1))); do mkdir "$0/$i"; echo "maps=$2 copies=1" > "$0/$i/spec"; done`,
		m.Nodes[0].Mount()+"/shuffle/job", fmt.Sprint(stages), fmt.Sprint(3*each))
	defer func() { // by one command: rm(1) would have the nodes agree on each map
		m.Nodes[0].Do("shuffle", "rm", "job")
		jobless(t, m.Nodes)
	}()
	begin := time.Now()
	daemon.Each(m.Nodes, func(i int, n *daemon.Place) {
		n.Must("python3", "-c", `
import os, sys, threading
job, stages, first, each = sys.argv[1], *map(int, sys.argv[2:])
def write(stage):
    for number in range(first, first + each):
        attempt = f"{job}/{stage}/.map-{number:06d}.0"
        with open(attempt, "w") as f:
            f.write(str(number))
        os.rename(attempt, f"{job}/{stage}/map-{number:06d}")
all = [threading.Thread(target=write, args=(i,)) for i in range(stages)]
for t in all: t.start()
for t in all: t.join()
`, n.Mount()+"/shuffle/job", fmt.Sprint(stages), fmt.Sprint(i*each), fmt.Sprint(each))
	})
	took := time.Since(begin)
	if got := m.Nodes[1].Must("sh", "-c", `cat "$0"/*/state | grep -c '^state *sealed'`, m.Nodes[1].Mount()+"/shuffle/job"); got != fmt.Sprint(stages, "\n") {
		t.Errorf("%s of %d stages are sealed", strings.TrimSpace(got), stages)
	}
	logs, err := filepath.Glob(m.Nodes[0].Dir + "/state/raft/log/*.wal")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log of the cluster: %v", err)
	}
	bytes, commands := 0, 0
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range regexp.MustCompile(`\{"At":[0-9]+,"By":"[0-9a-f]+","Maps":"[^"]+"\}`).FindAll(b, -1) {
			bytes, commands = bytes+len(one), commands+1
		}
	}
	const maps = 3 * stages * each
	t.Logf("%d maps by %d commands in %v, %.0f a second, %.1f bytes of the log each", maps, commands, took, maps/took.Seconds(), float64(bytes)/maps)
	if commands == 0 || bytes > 64*maps {
		t.Errorf("%d commands of %d bytes for %d maps", commands, bytes, maps)
	}
}

// Where nodes have disks, copies for other nodes are there, and nothing of them is in
// memory; with ack=durable no copy is anywhere else. They serve when their writer is gone,
// are made again on disks, and go with the job.
func TestCopiesOnDisks(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	disk := t.TempDir() // each node has its own directory below that
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "64MiB", "--pool-nvme", disk+":64MiB")
	nodes := m.Nodes
	const maps = 4
	inJob(nodes[0], `mkdir -p "$1/s" "$1/d"; echo 'maps=4 copies=2' > "$1/s/spec"; echo 'maps=4 copies=2 ack=durable' > "$1/d/spec"
for g in s d; do for m in 0 1 2 3; do seq "$m" 4 100000 > "$1/$g/.map-00000$m.0"; mv "$1/$g/.map-00000$m.0" "$1/$g/map-00000$m"; done; done`)
	whole := func(by *daemon.Place) { // at once, unless a node was slow
		t.Helper()
		eventually.Within(t, patience, "all maps have two copies", func() bool {
			return strings.Count(inJob(by, `cat "$1/s/state" "$1/d/state"`), "missing    0 copies") == 2
		})
	}
	whole(nodes[0])
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = m.Members(n).Self
		out := n.Must("sh", "-c", `ls "$1"/pool/*/*/maps 2>/dev/null | grep -c '^0' || true`, "sh", n.Dir+"/state") // with their tables
		if got, want := strings.TrimSpace(out), map[bool]string{true: fmt.Sprint(2 * maps), false: "0"}[i == 0]; got != want {
			t.Errorf("%s has %s files of maps in memory, want %s", n.Host.Name, got, want)
		}
	}
	on := func(ids ...string) (n int) {
		for _, id := range ids {
			names, err := filepath.Glob(filepath.Join(disk, "pool-"+id, "*", "*", "maps", "*"))
			if err != nil {
				t.Fatal(err)
			}
			n += len(names) / 2
		}
		return n
	}
	if own, others := on(ids[0]), on(ids[1:]...); own != maps || others != 2*maps {
		t.Errorf("the writer has %d maps on its disk, want %d; the others %d, want %d", own, maps, others, 2*maps)
	}
	want := inJob(nodes[0], `cat "$1/s/part-000000" "$1/d/part-000000" | sha256sum`)
	nodes[0].Kill()
	m.takesOut(nodes[1], ids[0])
	whole(nodes[1])
	if got := on(ids[1:]...); got != 4*maps {
		t.Errorf("the others have %d copies on disks, want %d", got, 4*maps)
	}
	for _, n := range nodes[1:] {
		if got := inJob(n, `cat "$1/s/part-000000" "$1/d/part-000000" | sha256sum`); got != want {
			t.Errorf("on %s: %s, want %s", n.Host.Name, got, want)
		}
	}
	endJob(t, nodes[1:])
	eventually.Within(t, patience, "nothing of the job is on disks", func() bool { return on(ids[1:]...) == 0 })
}
