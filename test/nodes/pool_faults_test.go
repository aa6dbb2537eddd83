package nodes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// What was committed on four nodes is in the parts, whole and once, whatever becomes of
// one of them meanwhile.
func TestPoolOutlivesItsTroubles(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:4], "--pool-ram", "128MiB")
	m.voting()
	for _, part := range []struct {
		name string
		run  func(m *team)
	}{
		{"what is written goes ahead", writtenAhead},
		{"the leader is not heard when it has agreed", answerLost},
		{"a writer is cut off, and another commits", cutOffWriter},
		{"nodes are killed amid a copy", killedAmidACopy},
		{"nodes are killed amid a merge", killedAmidAMerge},
		{"nodes are killed amid a sorted merge", killedAmidASortedMerge},
		{"a peer is stopped", stoppedPeer},
		{"two attempts of one name", equalNames},
		{"the leader is killed at the seal", killedAtTheSeal},
		{"a host restarts with the same address", hostRestarts},
		{"a node is killed that has reserved of a quota", reserverKilled},
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

// commits is a script's function that renames an attempt until it is known what became of
// it, after which the map has to be there.
const commits = `commits() { # STAGE MAP
	for try in 1 2 3 4 5 6; do
		said=$(mv -T "$1/.map-$2.0" "$1/map-$2" 2>&1) && break
		case $said in *"timed out"*) ;; *) ! [ -e "$1/.map-$2.0" ] && [ -e "$1/map-$2" ] && break; echo "$said" >&2; exit 1;; esac
	done
	[ -e "$1/map-$2" ] && ! [ -e "$1/.map-$2.0" ]
}
`

func mapName(number int) string { return fmt.Sprintf("%06d", number) }

// commit commits a text as a map.
func (g stage) commit(n *daemon.Place, number int, text string) {
	g.t.Helper()
	g.sh(n, commits+`printf %s "$3" > "$1/.map-$2.0"; commits "$1" "$2"`, mapName(number), text)
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
	eventually.Within(g.t, patience, "no copy is missing", func() bool {
		return strings.Contains(g.sh(n, `cat "$1/state"`), "missing    0 copies")
	})
}

// writtenAhead: of what is written of an attempt the most is on another node before it is
// committed, and is part of the copy there, also when the daemon is killed in between.
func writtenAhead(m *team) {
	g := m.stage("ahead", "maps=2 copies=2")
	writer, want := m.Nodes[0], ""
	for number := range 2 {
		_, before := m.moved(writer)
		g.lay(writer, number)
		want += g.sum(writer, ".map-"+mapName(number)+".0")
		eventually.Within(m.t, patience, "most of an attempt is on another node", func() bool {
			_, sent := m.moved(writer)
			return sent > before+large/4*3
		})
		if number == 1 {
			writer.Kill()
			writer.Start()
			m.voting()
		}
		_, before = m.moved(writer)
		g.sh(writer, commits+`commits "$1" "$2"`, mapName(number))
		if _, sent := m.moved(writer); number == 0 && sent > before+large/2 {
			m.t.Errorf("%d bytes were sent again", sent-before)
		}
	}
	for _, n := range m.Nodes {
		if got := g.sum(n, "map-000000") + g.sum(n, "map-000001"); got != want {
			m.t.Errorf("on %s the maps have the sums %s, want %s", n.Host.Name, got, want)
		}
	}
	g.whole(writer)
	g.gone()
}

// answerLost: what the leader says to a writer is lost, from the midst of its copy on, so
// that the writer cannot know what became of its attempt. Until it does no process writes the
// attempt, and a second rename to the same name finds it.
func answerLost(m *team) {
	g := m.stage("answer", "maps=1 copies=2")
	leader, others := m.Leader()
	writer := others[0]
	g.layHollow(writer, 0)
	want := g.sum(writer, ".map-000000.0")
	_, ended := m.underWay(writer, true, func() error { // mv(1) would say what it sees of the target afterwards
		return g.try(writer, `python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$1/.map-000000.0" "$1/map-000000"`)
	})
	m.must(leader.Host.LoseTo(writer.Host))
	if err := ended(); err == nil || !strings.Contains(err.Error(), "timed out") {
		m.t.Errorf("a commit that the leader does not answer: %v", err)
	}
	if err := g.try(writer, `echo more >> "$1/.map-000000.0"`); err == nil || !strings.Contains(err.Error(), "busy") {
		m.t.Errorf("what may be committed can be written: %v", err)
	}
	m.must(leader.Host.LoseNothing())
	m.voting()
	g.sh(writer, commits+`commits "$1" 000000`)
	for _, n := range m.Nodes {
		if got := g.sum(n, "part-000000"); got != want {
			m.t.Errorf("on %s the part is %s, want %s", n.Host.Name, got, want)
		}
	}
	g.whole(writer)
	g.gone()
}

// cutOffWriter: a writer's host is cut off in mid-commit, and another node commits the
// map. Back again, the writer's attempt is discarded.
func cutOffWriter(m *team) {
	g := m.stage("cut", "maps=1 copies=2")
	leader, others := m.Leader()
	writer := others[0]
	g.layHollow(writer, 0)
	_, late := m.underWay(writer, true, func() error { return g.try(writer, `mv -T "$1/.map-000000.0" "$1/map-000000"`) })
	m.must(writer.Host.LinkDown())
	g.commit(leader, 0, "other")
	if err := late(); err == nil {
		m.t.Error("a commit went well on a host that was cut off")
	}
	m.must(writer.Host.LinkUp())
	m.voting()
	g.sh(writer, commits+`commits "$1" 000000`)
	g.has("other", m.Nodes...)
}

// reserverKilled: what an attempt has reserved of a quota no attempt of another node can have,
// also when the daemon was killed, until it is removed; then another has it.
func reserverKilled(m *team) {
	m.Nodes[0].Do("shuffle", "create", "quota/s", "maps=9", "copies=1", "--quota", "1MiB")
	g := stage{m, "/shuffle/quota/s"}
	reserver, others := m.Leader()
	other := others[0]
	g.sh(reserver, `: > "$1/.map-000000.0"; fallocate -l 600K "$1/.map-000000.0"`)
	g.sh(other, `: > "$1/.map-000001.0"`)
	refuses := func() {
		m.t.Helper()
		if err := g.try(other, `fallocate -l 500K "$1/.map-000001.0"`); err == nil || !strings.Contains(err.Error(), "quota exceeded") {
			m.t.Errorf("more than what is left of the quota is reserved: %v", err)
		}
	}
	refuses()
	reserver.Kill()
	m.LeaderOf(others)
	refuses()
	reserver.Start()
	m.voting()
	g.sh(reserver, `head -c 100K /dev/zero > "$1/.map-000002.0"; mv "$1/.map-000002.0" "$1/map-000002"`)
	refuses()
	g.sh(reserver, `rm "$1/.map-000000.0"`)
	eventually.Within(m.t, patience, "what was removed on one node another has", func() bool {
		return g.try(other, `fallocate -l 900K "$1/.map-000001.0"`) == nil
	})
	g.gone()
}

// gone removes the job of the stage, so that the next has the room.
func (g stage) gone() {
	g.t.Helper()
	g.sh(g.Nodes[0], `rm -r "${1%/s}"`)
}

// killedAmidACopy: of a map that is on its way to another node, that one is killed, and
// the commit goes well; then, of another map, the writer, and what it has left is committed
// by the same name. Both have two copies in the end, with the bytes that were written.
func killedAmidACopy(m *team) {
	g := m.stage("copies", "maps=2 copies=2")
	_, others := m.Leader()
	writer, want := others[0], ""
	for number := range 2 {
		g.layHollow(writer, number)
		want += g.sum(writer, ".map-"+mapName(number)+".0")
		peer, ended := m.underWay(writer, true, func() error {
			return g.try(writer, commits+`commits "$1" "$2"`, mapName(number))
		})
		if number == 0 {
			peer.Kill()
			m.must(ended())
			peer.Start()
		} else {
			writer.Kill()
			if err := ended(); err == nil {
				m.t.Error("a commit went well whose daemon was killed amid its copy")
			}
			writer.Start()
			m.voting()
			g.sh(writer, commits+`commits "$1" "$2"`, mapName(number))
		}
		m.voting()
	}
	for _, n := range m.Nodes {
		if got := g.sum(n, "map-000000") + g.sum(n, "map-000001"); got != want {
			m.t.Errorf("on %s the maps have the sums %s, want %s", n.Host.Name, got, want)
		}
	}
	g.whole(writer)
	g.gone()
}

// killedAmidAMerge: the node that merges a part is killed, and what is read once it is back
// is right; then, of nodes that send what they have of another part, one is killed, and the
// part is read whole from other copies.
func killedAmidAMerge(m *team) {
	const maps, parts = 4, 2
	g := m.stage("merge", fmt.Sprintf("maps=%d parts=%d copies=2", maps, parts))
	var pieces [parts]string
	for number := range maps {
		n := m.Nodes[number%2]
		g.lay(n, number)
		g.sh(n, commits+`python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<3Q", 0, int(sys.argv[1]), 2 * int(sys.argv[1])))' "$3" > "$1/.map-$2.0.idx"
commits "$1" "$2"`, mapName(number), fmt.Sprint(large/parts))
		pieces[0] += fmt.Sprintf(`head -c %d "$1/map-%s"; `, large/parts, mapName(number))
		pieces[1] += fmt.Sprintf(`tail -c %d "$1/map-%s"; `, large/parts, mapName(number))
	}
	var wants []read
	for part := range parts {
		wants = append(wants, read{fmt.Sprintf("part-%06d", part), g.sh(m.Nodes[0], fmt.Sprintf(`{ %s} | sha256sum`, pieces[part]))})
	}
	g.outlives(wants)
}

// killedAmidASortedMerge is killedAmidAMerge of a part that is in order.
func killedAmidASortedMerge(m *team) {
	g := m.stage("sorted", "maps=3 copies=2 record=fixed:64 key=0 sort=key")
	for number := range 3 {
		g.lay(m.Nodes[number], number)
		g.sh(m.Nodes[number], commits+`commits "$1" "$2"`, mapName(number))
	}
	var wants []read
	for from := range 2 {
		wants = append(wants, read{fmt.Sprintf("part-000000@maps=%d-%d", from, from+1), g.sh(m.Nodes[0], `python3 -c 'import sys
all = b"".join(open(name, "rb").read() for name in sys.argv[1:])
sys.stdout.buffer.write(b"".join(sorted(all[i:i+64] for i in range(0, len(all), 64))))' "$1/map-$2" "$1/map-$3" | sha256sum`, mapName(from), mapName(from+1))})
	}
	g.outlives(wants)
}

// A read is of a part, and the sum of what is in it.
type read struct{ name, want string }

// outlives reads parts on a node that has to fetch for them. Amid the first, the node that
// reads is killed; amid the second, the one that sends. Not the other way round: a sender that
// is found down while it starts anew has its maps copied, perhaps to the node that reads.
func (g stage) outlives(parts []read) {
	g.t.Helper()
	g.whole(g.Nodes[0])
	reader := g.poorest()
	for i, part := range parts {
		got := ""
		sender, ended := g.underWay(reader, false, func() (err error) {
			got, err = reader.Tool("bash", "-o", "pipefail", "-c", `cat "$0" | sha256sum`, reader.Mount()+g.dir+"/"+part.name)
			return err
		})
		if i == 0 {
			reader.Kill()
			if err := ended(); err == nil {
				g.t.Error("a part was read whole whose daemon was killed amid its merge")
			}
			reader.Start()
			got = g.sum(reader, part.name)
		} else {
			sender.Kill()
			g.must(ended())
			sender.Start()
		}
		if got != part.want {
			g.t.Errorf("%s is %s, want %s", part.name, got, part.want)
		}
		g.voting()
	}
	g.whole(g.Nodes[0])
	g.gone()
}

// poorest is the node that has the fewest maps of the stage.
func (g stage) poorest() (n *daemon.Place) {
	g.t.Helper()
	kept := keptBy(g.t, g.Nodes[0], strings.TrimPrefix(g.dir, "/shuffle/"))
	return slices.MinFunc(g.Nodes, func(a, b *daemon.Place) int { return kept[a.Host.Name] - kept[b.Host.Name] })
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

// equalNames: equal names on two nodes are two attempts, of which one wins, whole, on
// all nodes.
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
// told its outcome, and a reader that waits for a part on another node gets it.
func killedAtTheSeal(m *team) {
	g := m.stage("seal", "maps=2 copies=2")
	leader, others := m.Leader()
	g.commit(others[0], 0, "one")
	type reading struct {
		text string
		err  error
	}
	readers := make(chan reading, len(others))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
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
		ended <- g.try(others[1], commits+`commits "$1" 000001`)
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
