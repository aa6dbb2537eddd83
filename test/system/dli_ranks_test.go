package system_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A big source has several chunks: records of a MiB, all of them different.
const (
	bigRecord = 1 << 20
	bigChunk  = 64 // records
	bigCount  = 3*bigChunk + 32
)

func newBig(t testing.TB) source {
	t.Helper()
	s := source{path: filepath.Join(t.TempDir(), "big")}
	f, err := os.Create(s.path)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(bigCount*bigRecord))
	for i := range uint64(bigCount) {
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, i*i+1), int64(i)*bigRecord+int64(i)*8)
		must(t, err)
	}
	s.uri = fmt.Sprintf("file:%s?as=fixed:%d", s.path, bigRecord)
	return s
}

// bigSums are the sum of all records of a big source for dli_static, and of
// each chunk for dli_local. The race detector would look at each byte of them.
//
//go:norace
func bigSums(t testing.TB, s source) (records uint64, chunks []uint64) {
	t.Helper()
	f, err := os.Open(s.path)
	must(t, err)
	defer f.Close()
	buf := make([]byte, bigChunk*bigRecord)
	for i := 0; i < bigCount; i += bigChunk {
		n, _ := f.ReadAt(buf, int64(i)*bigRecord)
		for k := 0; k < n; k += bigRecord {
			records += xxhash.Sum64(buf[k : k+bigRecord])
		}
		h := uint64(n)
		for k := 0; k < n; k += 8 {
			h = (h ^ binary.LittleEndian.Uint64(buf[k:])) * 0x9e3779b97f4a7c15
		}
		chunks = append(chunks, h)
	}
	return records, chunks
}

// bigTable is the table of a big source whose chunks are on these hosts.
func bigTable(hosts ...string) (chunks []dliChunk) {
	for i := 0; i < bigCount; i += bigChunk {
		n := uint64(min(bigChunk, bigCount-i))
		chunks = append(chunks, dliChunk{bytes: n * bigRecord, records: n, hosts: hosts[i/bigChunk%len(hosts)]})
	}
	return follow(chunks)
}

// The table of a mount, and every call on it.
func TestDLIOnAMount(t *testing.T) {
	t.Parallel()
	here, err := os.Hostname()
	must(t, err)
	n := start(t)
	n.create("big", newBig(t), "--batch", "16", "--ranks", "2", "--order", "full")
	n.create("none", newLines(t, 0))
	big := bigTable(here)
	views := []string{n.path("big"), n.path("big@epoch=3,ranks=7,batch=chunk"), n.path("none")}
	holdDLI(t, append(views, n.path("nothing")),
		dliAnswers(t, views[0], big)+dliAnswers(t, views[1], big)+dliAnswers(t, views[2], nil)+dliErrors(n.path("nothing"), unix.ENOENT))
	holdDLI(t, []string{n.path() + "/"}, n.path()+"/:"+dliMap("big", big)+dliMap("none", nil)+"\n")
	if got := sh(t, `head -1 "$1"; getfattr --absolute-names -d "$2" | grep -c ^user`, n.path("big", "chunks"), n.path("big")); !strings.HasPrefix(got, "chunk of 4 ") || !strings.HasSuffix(got, "\n3\n") {
		t.Errorf("the table begins with %s", got)
	}
	if c := n.status().Counters; c.Fills != 0 || c.Opens != 0 {
		t.Errorf("asking where chunks are fetched some: %+v", c)
	}
}

// A program asks by whatever name its host has, be it one that the table has not: it is
// that host in all calls, where meta.SameHost says so, and no other.
func TestDLINamesOfHosts(t *testing.T) {
	t.Parallel()
	here, err := os.Hostname()
	must(t, err)
	big := newBig(t)
	for host, names := range map[string]map[string]bool{
		"node1": {"node1": true, "NODE1": true, "node1.": true, "node1.example.com": true, "Node1.Example.COM.": true,
			"node10": false, "node": false, "example.node1": false, "node1,node2": false},
		"node1.example.com": {"node1": true, "NODE1.example.com": true, "node1.example.com.": true,
			"node1.example.org": false, "node1.example": false, "example.com": false},
		"10.0.0.1": {"10.0.0.1": true, "::ffff:10.0.0.1": true, "10": false, "10.0.0.2": false},
	} {
		n := start(t, "--host", host)
		n.create("big", big, "--batch", "16", "--ranks", "2")
		for name, same := range names {
			if meta.SameHost(host, name) != same {
				t.Errorf("SameHost(%q, %q) is not %v", host, name, same)
			}
			want := "\n0 of 4, 0.000 0.000, 0"
			if same {
				want = "\n4 of 4, 100.000 100.000, 4"
			}
			for _, bin := range []string{"dli_names_san", "dli_names_cxx"} {
				if got := program(t, programs+"bin/"+bin, n.path("big"), name); "\n"+strings.TrimSpace(got) != want {
					t.Errorf("%s: on %s, %s has %s, want%s", bin, host, name, got, want)
				}
			}
		}
		if got := sh(t, `getfattr --absolute-names --only-values -n user.rankfs.host.node1 "$1"; echo; getfattr -n user.rankfs.host. "$1" 2>&1 | tail -1`, n.path("big")); !strings.HasSuffix(got, "No such attribute\n") ||
			strings.HasPrefix(got, host) != meta.SameHost(host, "node1") {
			t.Errorf("the attribute of %s says %s", host, got)
		}
	}
	// NULL is this host, whatever of its name its node was given.
	short, _, full := strings.Cut(here, ".")
	if !full {
		short += ".example.com"
	}
	n := start(t, "--host", short)
	n.create("big", big)
	if got := program(t, programs+"bin/dli_names_san", n.path("big")); strings.TrimSpace(got) != "4 of 4, 100.000 100.000, 4" {
		t.Errorf("this host, called %s, has %s", short, got)
	}
}

// Ranks read the chunks that are local to them, these and no others, from the
// mount and by their offsets in the source.
func TestDLIRanksReadWhatIsLocal(t *testing.T) {
	t.Parallel()
	s := newBig(t)
	_, sums := bigSums(t, s)
	n := start(t, "--ram", "256MiB")
	n.create("big", s, "--ranks", "2", "--order", "full")
	dir := t.TempDir()
	three := newTable(t, dir, "three", dliTable(bigTable("a", "b,x", "c")))
	both := newTable(t, dir, "both", dliTable(bigTable("a", "a,b", "d,b", "-")))
	type share struct{ chunks []int }
	whole := share{[]int{0, 1, 2, 3}}
	for name, tt := range map[string]struct {
		table string
		names []string
		want  []share
		here  bool
	}{
		"all here":          {n.path("big"), nil, []share{whole, whole}, true},
		"all elsewhere":     {n.path("big"), []string{"elsewhere"}, []share{{}, {}}, false},
		"a host for each":   {three, []string{"a", "b", "c"}, []share{{[]int{0, 3}}, {[]int{1}}, {[]int{2}}}, false},
		"two on each chunk": {both, []string{"a", "b"}, []share{{[]int{0, 1}}, {[]int{1, 2}}}, false},
	} {
		for _, from := range [][]string{{n.path("big")}, {"-f", s.path}} {
			bin := map[bool]string{true: "dli_local", false: "dli_local_cxx"}[len(from) == 1]
			out := mpirun(t, len(tt.want), append(append([]string{bin, tt.table}, from...), tt.names...)...)
			for rank, want := range tt.want {
				var records, sum uint64
				for _, c := range want.chunks {
					records += uint64(min(bigChunk, bigCount-c*bigChunk))
					sum += sums[c]
				}
				check := 0
				if tt.here {
					check = 2 * len(want.chunks)
				}
				line := fmt.Sprintf("dli_local rank=%d chunks=%d records=%d bytes=%d sum=%016x check=%d percent=%.3f\n",
					rank, len(want.chunks), records, records*bigRecord, sum, check, 100*float64(records)/bigCount)
				if !strings.Contains(out, line) {
					t.Errorf("%s, %s from %v:\n%swant %s", name, bin, from, out, line)
				}
			}
		}
	}
}

// The two kinds of DL-MPI's programs: work divided beforehand, and handed out by
// a master. Each record once, wherever chunks are, and locally where that can be.
func TestDLIPatterns(t *testing.T) {
	t.Parallel()
	s := newBig(t)
	sum, _ := bigSums(t, s)
	n := start(t, "--ram", "256MiB")
	n.create("big", s, "--batch", "64")
	n.create("none", newLines(t, 0))
	dir := t.TempDir()
	table := func(name string, hosts ...string) string { return newTable(t, dir, name, dliTable(bigTable(hosts...))) }
	for _, tt := range []struct {
		name          string
		program       string
		ranks         int
		table         string
		low, high     int // chunks that are read where they are
		names, busied string
	}{
		{"all here", "dli_static", 3, n.path("big"), 4, 4, "", "3"},
		{"all here", "dli_worker", 4, n.path("big"), 4, 4, "", ""},
		{"three hosts", "dli_static", 3, table("three", "a", "b", "c"), 4, 4, "a,b,c", "3"},
		{"three hosts", "dli_worker", 4, table("three2", "a", "b", "c"), 0, 4, "master,a,b,c", ""},
		{"one host has all", "dli_static", 3, table("one", "b"), 2, 2, "b,a,c", "3"},
		{"one worker has all", "dli_worker", 2, table("one2", "b"), 4, 4, "a,b", "1"},
		{"on no known host", "dli_static", 3, table("nowhere", "-"), 0, 0, "a,b", "3"},
		{"on no known host", "dli_worker", 3, table("nowhere2", "-"), 0, 0, "a,b", ""},
		{"more ranks than chunks", "dli_static", 6, n.path("big"), 4, 4, "", "4"},
		{"more ranks than chunks", "dli_worker", 6, n.path("big"), 4, 4, "", ""},
	} {
		args := []string{tt.program, "-t", tt.table, n.path("big")}
		if tt.names != "" {
			args = slices.Insert(args, 1, "-p", tt.names)
		}
		out := mpirun(t, tt.ranks, args...)
		var ranks, busy, chunks, local, records, bytes int
		var got uint64
		_, err := fmt.Sscanf(out, tt.program+" ranks=%d busy=%d chunks=%d local=%d records=%d bytes=%d sum=%x\n",
			&ranks, &busy, &chunks, &local, &records, &bytes, &got)
		if err != nil || chunks != len(bigTable("")) || records != bigCount || bytes != bigCount*bigRecord || got != sum {
			t.Errorf("%s, %s: %swant %d chunks, %d records, sum=%016x", tt.name, tt.program, out, len(bigTable("")), bigCount, sum)
		}
		if local < tt.low || local > tt.high || tt.busied != "" && strconv.Itoa(busy) != tt.busied {
			t.Errorf("%s, %s: %d chunks read by %d ranks where they are, want %d to %d by %s", tt.name, tt.program, local, busy, tt.low, tt.high, tt.busied)
		}
	}
	for _, p := range []string{"dli_static", "dli_worker"} {
		if out := mpirun(t, 2, p, n.path("none")); !strings.Contains(out, " chunks=0 local=0 records=0 bytes=0 sum=0000000000000000") {
			t.Errorf("of nothing: %s", out)
		}
	}
}
