package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// What was committed on four nodes is in the parts, whole and once, whatever becomes of
// one of them meanwhile.
func TestPoolOutlivesItsTroubles(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "64MiB")
	m.voting()
	for _, part := range []struct {
		name string
		run  func(m *team)
	}{
		{"the leader is not heard when it has agreed", answerLost},
		{"a writer is cut off, and another commits", cutOffWriter},
		{"a peer is stopped", stoppedPeer},
		{"two attempts of one name", equalNames},
		{"the leader is killed at the seal", killedAtTheSeal},
		{"a host restarts with the same address", hostRestarts},
		{"a slow link", slowCopy},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			m.in(t)
			part.run(m)
			m.voting()
		}) {
			return // the rest would wait for what does not come
		}
		m.in(t)
	}
	m.noJobs()
}

// A stage is one of a job on all nodes of a team.
type stage struct {
	*team
	dir string // below each mount
}

func (m *team) stage(job, spec string) stage {
	m.t.Helper()
	g := stage{m, "/shuffle/" + job + "/s"}
	g.sh(m.Nodes[0], `mkdir -p "$1"; echo "$2" > "$1/spec"`, spec)
	return g
}

// sh runs a script on a node, whose $1 is the stage.
func (g stage) sh(n *daemon.Place, script string, args ...string) string {
	g.t.Helper()
	return n.Must("sh", append([]string{"-euc", script, "sh", n.Mount() + g.dir}, args...)...)
}

// try is sh for what may fail.
func (g stage) try(n *daemon.Place, script string, args ...string) error {
	_, err := n.Tool("sh", append([]string{"-euc", script, "sh", n.Mount() + g.dir}, args...)...)
	return err
}

// commit commits a text as a map.
func (g stage) commit(n *daemon.Place, number int, text string) {
	g.t.Helper()
	g.sh(n, `printf %s "$3" > "$1/.map-$2.0"; mv -T "$1/.map-$2.0" "$1/map-$2"`, fmt.Sprintf("%06d", number), text)
}

// has holds some nodes to what is in the one part of the stage.
func (g stage) has(want string, nodes ...*daemon.Place) {
	g.t.Helper()
	for _, n := range nodes {
		if got := g.sh(n, `cat "$1/part-000000"`); got != want {
			g.t.Errorf("on %s the part has %q, want %q", n.Host.Name, got, want)
		}
	}
}

// whole waits until no copy is missing.
func (g stage) whole(n *daemon.Place) {
	g.t.Helper()
	eventually.Within(g.t, time.Minute, "no copy is missing", func() bool {
		return strings.Contains(g.sh(n, `cat "$1/state"`), "missing    0 copies")
	})
}

// answerLost: what the leader says to a writer is lost, from the midst of its copy on, so
// that the writer cannot know what became of its attempt. Until it does nobody writes the
// attempt, and the same name once more finds it.
func answerLost(m *team) {
	g := m.stage("answer", "maps=1 copies=2")
	leader, others := m.Leader()
	writer := others[0]
	g.sh(writer, `head -c 4000000 /dev/zero > "$1/.map-000000.0"`)
	m.must(writer.Host.LinkRate(1 << 20))
	ended := make(chan error, 1)
	go func() { // mv(1) would say what it sees of the target afterwards
		ended <- g.try(writer, `python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$1/.map-000000.0" "$1/map-000000"`)
	}()
	time.Sleep(2 * time.Second)
	m.must(leader.Host.LoseTo(writer.Host))
	m.must(writer.Host.LinkRate(0))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "timed out") {
		m.t.Errorf("a commit that nobody answers: %v", err)
	}
	if err := g.try(writer, `echo more >> "$1/.map-000000.0"`); err == nil || !strings.Contains(err.Error(), "busy") {
		m.t.Errorf("what may be committed can be written: %v", err)
	}
	m.must(leader.Host.LoseNothing())
	m.voting()
	g.sh(writer, `mv -T "$1/.map-000000.0" "$1/map-000000"; ! [ -e "$1/.map-000000.0" ]`)
	for _, n := range m.Nodes {
		if got := g.sh(n, `wc -c < "$1/part-000000"`); got != "4000000\n" {
			m.t.Errorf("on %s the part has %s bytes", n.Host.Name, got)
		}
	}
	g.whole(writer)
}

// cutOffWriter: a writer's host is cut off in mid-commit, and another node commits the
// map. Back again, the writer's attempt is discarded.
func cutOffWriter(m *team) {
	g := m.stage("cut", "maps=1 copies=2")
	leader, others := m.Leader()
	writer := others[0]
	g.sh(writer, `head -c 8000000 /dev/zero > "$1/.map-000000.0"`)
	m.must(writer.Host.LinkRate(1 << 20))
	late := make(chan error, 1)
	go func() { late <- g.try(writer, `mv -T "$1/.map-000000.0" "$1/map-000000"`) }()
	time.Sleep(time.Second) // in the midst of its copy
	m.must(writer.Host.LinkDown())
	m.must(writer.Host.LinkRate(0))
	g.commit(leader, 0, "other")
	if err := <-late; err == nil {
		m.t.Error("a commit went well on a host that was cut off")
	}
	m.must(writer.Host.LinkUp())
	m.voting()
	g.sh(writer, `mv -T "$1/.map-000000.0" "$1/map-000000"; ! [ -e "$1/.map-000000.0" ]`)
	g.has("other", m.Nodes...)
}

// stoppedPeer: a node that answers nothing has the copies of some maps, and is to get
// those of others. Parts come from other copies, and commits get theirs elsewhere.
func stoppedPeer(m *team) {
	g := m.stage("stopped", "maps=8 copies=2")
	leader, others := m.Leader()
	var want strings.Builder
	for i := range 4 {
		g.commit(m.Nodes[i], i, fmt.Sprintf("map %d\n", i))
	}
	others[0].Signal(syscall.SIGSTOP)
	for i := 4; i < 8; i++ {
		g.commit(leader, i, fmt.Sprintf("map %d\n", i))
	}
	for i := range 8 {
		fmt.Fprintf(&want, "map %d\n", i)
	}
	g.has(want.String(), leader, others[1], others[2])
	g.whole(leader)
	others[0].Signal(syscall.SIGCONT)
	m.voting()
	g.has(want.String(), m.Nodes...)
}

// equalNames: equal names on two nodes are two attempts, of which one wins, whole, for
// everybody.
func equalNames(m *team) {
	const maps = 12
	g := m.stage("equal", fmt.Sprintf("maps=%d copies=2", maps))
	daemon.Each(m.Nodes, func(i int, n *daemon.Place) {
		if err := g.try(n, `for i in $(seq -f %06g 0 $(($2-1))); do
	echo "$i by $3" > "$1/.map-$i.0"; mv -T "$1/.map-$i.0" "$1/map-$i"; cat "$1/map-$i" >> "$3"; done`, fmt.Sprint(maps), n.Dir+"/saw"); err != nil {
			m.t.Error(err)
		}
	})
	want := m.Nodes[0].Must("cat", m.Nodes[0].Dir+"/saw")
	for _, n := range m.Nodes {
		if got := n.Must("cat", n.Dir+"/saw"); got != want {
			m.t.Errorf("who won on %s:\n%son %s:\n%s", m.Nodes[0].Host.Name, want, n.Host.Name, got)
		}
	}
	g.has(want, m.Nodes...)
}

// killedAtTheSeal: the leader is killed while the last map is committed. The commit is
// told its outcome, and who waits for a part on another node reads it.
func killedAtTheSeal(m *team) {
	g := m.stage("seal", "maps=2 copies=2")
	leader, others := m.Leader()
	g.commit(others[0], 0, "one")
	type reading struct {
		text string
		err  error
	}
	readers := make(chan reading, len(others))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, n := range others {
		cmd := n.Command(ctx, "cat", n.Mount()+g.dir+"/part-000000")
		go func() {
			out, err := cmd.Output()
			readers <- reading{string(out), err}
		}()
	}
	g.sh(others[1], `printf two > "$1/.map-000001.0"`)
	ended := make(chan error, 1)
	go func() {
		ended <- g.try(others[1], `for try in 1 2 3 4; do mv -T "$1/.map-000001.0" "$1/map-000001" && exit; done; exit 1`)
	}()
	leader.Kill()
	m.must(<-ended)
	for range others {
		if r := <-readers; r.err != nil || r.text != "onetwo" {
			m.t.Errorf("who waited for the part: %q, %v", r.text, r.err)
		}
	}
	leader.Start()
	m.voting()
	g.has("onetwo", m.Nodes...)
}

// hostRestarts: a node comes back with its name and its address, and without what it had
// in memory. What was there comes from other copies, and is copied again.
func hostRestarts(m *team) {
	g := m.stage("host", "maps=8 copies=2")
	var want strings.Builder
	for i := range 8 {
		text := fmt.Sprintf("map %d\n", i)
		want.WriteString(text)
		g.commit(m.Nodes[i%4], i, text)
	}
	_, others := m.Leader()
	dead := others[0]
	dead.Kill()
	dead.Must("sh", "-c", `grep -o "$0/[0-9]*" /proc/self/mounts | xargs -r umount -l`, dead.Dir+"/state/pool")
	dead.Start()
	g.has(want.String(), m.Nodes...)
	g.whole(m.Nodes[0])
	dead.Kill() // the new copies serve as well
	dead.Must("sh", "-c", `grep -o "$0/[0-9]*" /proc/self/mounts | xargs -r umount -l`, dead.Dir+"/state/pool")
	g.has(want.String(), others[1:]...)
	dead.Start()
	g.whole(m.Nodes[0])
}

// slowCopy: a copy that takes longer than a node may be silent is waited for.
func slowCopy(m *team) {
	g := m.stage("slow", "maps=1 copies=2 strict=1")
	_, others := m.Leader()
	writer := others[0]
	m.must(writer.Host.LinkRate(1 << 20))
	defer writer.Host.LinkRate(0)
	g.sh(writer, `head -c 13000000 /dev/zero > "$1/.map-000000.0"; mv -T "$1/.map-000000.0" "$1/map-000000"`)
	m.must(writer.Host.LinkRate(0))
	if got := g.sh(m.Nodes[0], `getfattr --only-values -n user.rankfs.copies "$1/map-000000"; wc -c < "$1/part-000000"`); got != "213000000\n" {
		m.t.Errorf("copies and size of the map are %s", got)
	}
}
