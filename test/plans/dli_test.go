package plans_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

const dliRecord = 1024

// A spread is a dataset of records in HDFS, a chunk for each block.
type spread struct {
	dir   string
	hosts [][]string // by chunk, as the namenode says
	sum   uint64     // of the XXH64 of all records
}

func putSpread(t *testing.T, c *cluster.Cluster) *spread {
	t.Helper()
	s := &spread{dir: c.Dir(t)}
	random := rand.NewChaCha8([32]byte{7})
	for i, h := range c.DataNodes() {
		content, name := make([]byte, 3*block), fmt.Sprintf("%s/%d", s.dir, i)
		random.Read(content)
		for at := 0; at < len(content); at += dliRecord {
			s.sum += xxhash.Sum64(content[at : at+dliRecord])
		}
		h.Put(t, name, content, 2, block)
		if err := c.WaitReplicas(t.Context(), name, 2); err != nil {
			t.Fatal(err)
		}
		blocks, err := c.Blocks(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			s.hosts = append(s.hosts, b.Hosts)
		}
	}
	return s
}

// says is what dli_calls says of a host on it, as the namenode has it.
func (s *spread) says(host string) string {
	var b strings.Builder
	b.WriteString(" list")
	n := 0
	for i, hosts := range s.hosts {
		if slices.Contains(hosts, host) {
			fmt.Fprintf(&b, " %d:%d+%d:%d+%d", i, i*block, block, i*block/dliRecord, block/dliRecord)
			n++
		}
	}
	share := 100 * float64(n) / float64(len(s.hosts))
	fmt.Fprintf(&b, " percent %.3f %.3f;", share, share)
	return b.String()
}

// dealt is how many chunks dli_static has read where they are: each rank in turn
// takes the first that its host has, or else the first.
func (s *spread) dealt(ranks []string) (local int) {
	left := make([]int, len(s.hosts))
	for i := range left {
		left[i] = i
	}
	for turn := 0; len(left) > 0; turn++ {
		i := slices.IndexFunc(left, func(chunk int) bool { return slices.Contains(s.hosts[chunk], ranks[turn%len(ranks)]) })
		if i >= 0 {
			local++
		}
		left = slices.Delete(left, max(i, 0), max(i, 0)+1)
	}
	return local
}

// The hosts that a namenode names reach the calls of include/dli.h on every host,
// by the host's own name and by the others', and programs that divide chunks by them
// read each record once, and as much where it is as there is to be had.
func TestDLIOverHDFS(t *testing.T) {
	c := cluster.Plans(t)
	s := putSpread(t, c)
	m := newTeam(t, c, c.DataNodes())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+s.dir, "--as", fmt.Sprint("fixed:", dliRecord), "--ranks", "4", "--batch", "64")
	m.Await("d")
	var names, offsets []string
	for _, n := range m.Nodes {
		names = append(names, n.Host.Name)
	}
	for i := range s.hosts {
		offsets = append(offsets, fmt.Sprint(i*block+i))
	}
	for _, n := range m.Nodes {
		want := n.Mount() + "/datasets/d:" + s.says(n.Host.Name)
		for _, name := range names {
			want += s.says(name)
		}
		for _, hosts := range s.hosts {
			want += map[bool]string{true: " at here;", false: " at elsewhere;"}[slices.Contains(hosts, n.Host.Name)]
		}
		got := n.Must(daemon.Built(t, "dli_calls"), "-,"+strings.Join(names, ","), strings.Join(offsets, ","), n.Mount()+"/datasets/d")
		if !strings.HasPrefix(got, want+" map ") {
			t.Errorf("on %s:\n%s\nwant\n%s map ...", n.Host.Name, got, want)
		}
	}
	// The same path on each host leads to its own mount.
	const path = "/run/rankfs-test-plans"
	for _, n := range m.Nodes {
		n.Must("ln", "-sfn", n.Mount(), path)
		t.Cleanup(func() { n.Tool("rm", "-f", path) })
	}
	var seats []daemon.Seat
	for _, n := range m.Nodes {
		seats = append(seats, daemon.Seat{At: n, Ranks: 1})
	}
	for _, p := range []string{"dli_static", "dli_worker"} {
		out, err := daemon.MPI(c.Agent(t), seats, daemon.Built(t, p), path+"/datasets/d")
		var busy, local int
		var got uint64
		_, scan := fmt.Sscanf(out, p+fmt.Sprintf(" ranks=4 busy=%%d chunks=%d local=%%d records=%d bytes=%d sum=%%x",
			len(s.hosts), len(s.hosts)*block/dliRecord, len(s.hosts)*block), &busy, &local, &got)
		if err != nil || scan != nil || got != s.sum {
			t.Errorf("%s: %v, %v; want sum=%016x\n%s", p, err, scan, s.sum, out)
		}
		t.Logf("%s: %d of %d chunks were read where they are", p, local, len(s.hosts))
		if want := s.dealt(names); p == "dli_static" && local != want || local == 0 {
			t.Errorf("%s: %d chunks were read where they are, want %d", p, local, want)
		}
	}
}
