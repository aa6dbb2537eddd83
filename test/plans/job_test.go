package plans_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// seat places eight ranks on nodes, in blocks, and returns where each reads a view.
func seat(nodes []*daemon.Place, view string) (seats []daemon.Seat, dirs []string) {
	for i, n := range nodes {
		s := daemon.Seat{At: n, Ranks: 8*(i+1)/len(nodes) - 8*i/len(nodes)}
		seats = append(seats, s)
		for range s.Ranks {
			dirs = append(dirs, n.Mount()+"/datasets/"+view)
		}
	}
	return seats, dirs
}

// A job of eight ranks on four hosts loses one of them: its daemon, its datanode,
// and the ranks there, with which MPI ends the others. The eight go on elsewhere, on
// three hosts, from the step that they had come to, with the same bytes; and the
// next epoch is planned without the host that is gone.
func TestAJobLosesAHostWithRanks(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 16, c.DataNodes()...)
	m := newTeam(t, c, c.DataNodes())
	m.create("d", k, "--ranks", "8", "--batch", "128", "--order", "full", "--seed", "5")
	m.voting()
	agent, verify := c.Agent(t), daemon.Built(t, "map_verify")
	job := func(nodes []*daemon.Place, view string, args ...string) (string, error) {
		seats, dirs := seat(nodes, view)
		return daemon.MPI(agent, seats, verify, append(append(args, dirs...), k.checksums)...)
	}
	leader, others := m.Leader()
	lost, left := others[len(others)-1], append([]*daemon.Place{leader}, others[:len(others)-1]...)

	const step = 5 // to which all have come
	until := filepath.Join(t.TempDir(), "until")
	if err := os.WriteFile(until, fmt.Appendln(nil, step+4), 0o600); err != nil { // where they wait
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		out, err := job(append(left[:len(left):len(left)], lost), "d", "-u", until)
		ended <- fmt.Errorf("%w\n%s", err, out)
	}()
	for _, n := range m.Nodes {
		eventually.Within(t, patience, "its ranks are in the middle of the epoch", func() bool { return n.Opened() > 2*(step+3) })
	}
	lost.Kill()
	if err := lost.Host.Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	endRanks(t, lost, verify)
	t.Logf("the job ends: %.300v", <-ended)

	tail := filepath.Join(t.TempDir(), "tail")
	if out, err := job(left, "d", "-k", fmt.Sprint(step), "-o", tail); err != nil || !strings.Contains(out, "map_verify OK ranks=8") {
		t.Fatalf("elsewhere, from step %d: %v\n%s", step, err, out)
	}
	all := filepath.Join(t.TempDir(), "all")
	if out, err := job(left, "d", "-o", all); err != nil || !strings.Contains(out, " missing=0 ") {
		t.Fatalf("the whole epoch elsewhere: %v\n%s", err, out)
	}
	if rest, whole := read(t, tail), read(t, all); rest == "" || !strings.HasSuffix(whole, rest) {
		t.Errorf("from step %d on the ranks have %d bytes of checksums that are not the end of the epoch's %d", step, len(rest), len(whole))
	}
	out, err := job(left, "d@epoch=1")
	if err != nil || !strings.Contains(out, " missing=0 ") {
		t.Fatalf("the next epoch: %v\n%s", err, out)
	}
	if table := leader.Must("cat", leader.Mount()+"/datasets/d@epoch=1/locality"); planned(table, lost.Host.Name) != 0 || planned(table, leader.Host.Name) == 0 {
		t.Errorf("the next epoch is planned for the host that is gone:\n%.600s", table)
	}
}

// planned is how many batches of a table of locality are planned for a host.
func planned(table, host string) (n int) {
	for line := range strings.Lines(table) {
		var batch, rank, node string
		if fmt.Sscan(line, &batch, &rank, &node); node == host {
			n++
		}
	}
	return n
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// endRanks ends the ranks of a job on a host, and what mpirun has there to look
// after them: those processes of this job that are on that host's network.
func endRanks(t *testing.T, on *daemon.Place, program string) {
	t.Helper()
	network := func(pid string) string {
		at, _ := os.Readlink("/proc/" + pid + "/ns/net")
		return at
	}
	here := network(fmt.Sprint(on.Host.Pid))
	ranks := 0
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || here == "" {
		t.Fatalf("look for ranks on %s: network %q, %v", on.Host.Name, here, err)
	}
	for _, dir := range all {
		var pid int
		fmt.Sscan(filepath.Base(dir), &pid)
		exe, _ := os.Readlink(dir + "/exe")
		if isRank := exe == program; network(fmt.Sprint(pid)) == here && (isRank || filepath.Base(exe) == "orted") {
			if unix.Kill(pid, unix.SIGKILL) == nil && isRank {
				ranks++
			}
		}
	}
	if ranks != 2 {
		t.Errorf("%d ranks were on %s, want 2", ranks, on.Host.Name)
	}
}
