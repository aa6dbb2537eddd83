package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Built is a program of test/mpi, for the tests of a package beside that.
func Built(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../mpi/bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: build it with: make -C test/mpi", err)
	}
	return path
}

// A Seat is ranks side by side on a node.
type Seat struct {
	At    *Place
	Ranks int
}

// MPI runs a program with perNode ranks on each host, all at the same time.
func (m *Team) MPI(agent string, perNode int, program string, args ...string) (string, error) {
	var seats []Seat
	for _, n := range m.Nodes {
		seats = append(seats, Seat{n, perNode})
	}
	return MPI(agent, seats, program, args...)
}

// MPI runs a program with ranks in these seats. It is started on the first host,
// which reaches the others over the network that they share.
func MPI(agent string, seats []Seat, program string, args ...string) (string, error) {
	var hosts []string
	ranks := 0
	for _, s := range seats {
		hosts = append(hosts, fmt.Sprintf("%s:%d", s.At.Host.Name, s.Ranks))
		ranks += s.Ranks
	}
	const network = "10.77.0.0/24"
	line := []string{
		"--quiet", "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot",
		"--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
		"--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
		"--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network,
		"--mca", "mpi_yield_when_idle", "1", "--mca", "hwloc_base_mem_bind_failure_action", "silent",
		"--host", strings.Join(hosts, ","), "-np", fmt.Sprint(ranks), program,
	}
	return seats[0].At.within(jobTime, "mpirun", append(line, args...)...)
}
