package system_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

var (
	batches = flag.Int("batches", 20_000, "how many batches of 4 KiB TestSmallBatches has in memory")
	records = flag.Int("lines", 5_000_000, "how many lines the batch of TestSizesOfManyLines has")
)

// numbered is a file of so many pages, each of which begins with its number.
func numbered(t *testing.T, pages int) source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pages")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	page := make([]byte, 4096)
	for i := range pages {
		binary.LittleEndian.PutUint64(page, uint64(i))
		w.Write(page)
	}
	must(t, w.Flush())
	return source{path: path, uri: "file:" + path + "?as=fixed:4096"}
}

// Memory has as many small batches as there is room for, not as there may be
// files, each for little beside its bytes, and all are found there. In a soak
// there are a million.
func TestSmallBatches(t *testing.T) {
	t.Parallel()
	const few = 10
	many := *batches
	p := newNode(t)
	group, _ := newGroup(t, int64(many)*3*4096+1<<30)
	p.Under(inGroup(group)...)
	n := p.start("--ram", fmt.Sprint(many*4096>>20+256, "MiB"))
	n.create("many", numbered(t, many), "--batch", "1")
	n.create("few", numbered(t, few), "--batch", "1")
	r := newRank(t)
	must(t, os.WriteFile(group+"/cgroup.procs", []byte(strconv.Itoa(r.pid)), 0))
	touch := func(view string, from, count, of int) (median time.Duration) {
		for range count / few {
			a := r.well(order{Do: "touch", Path: n.path(view, "rank-0"), Off: int64(from), Len: few})
			median += time.Duration(a.N)
			from = (from + few) % of
		}
		return median / time.Duration(count/few)
	}
	resident, kernel := n.resident(), kernelBytes(t, group)
	touch("many", 0, many, many)
	touch("few", 0, few, few)
	beside := (n.resident() - resident) << 10
	c := n.status().Counters
	if _, _, slabs, state := n.status().tier("ram"); slabs < many || state != "ok" || c.Evicted > 0 || c.OpenErrors > 0 {
		t.Errorf("%d batches in memory, want %d; %d were evicted, %d opens failed; it is %s", slabs, many, c.Evicted, c.OpenErrors, state)
	}
	t.Logf("beside each of %d batches: %.0f bytes of the daemon, %.0f of the kernel, those that it gives back if asked among them",
		many, float64(beside)/float64(many), float64(kernelBytes(t, group)-kernel)/float64(many))
	// What they need is 80 bytes each; plans and what Go has yet to collect are the
	// rest, and most of it where batches are fewer.
	if many >= 1_000_000 && beside > 300*many {
		t.Errorf("%d batches take %d bytes of the daemon beside their own", many, beside)
	}
	if files := n.descriptors(); files > 1<<14+200 {
		t.Errorf("the daemon has %d descriptors", files)
	}
	turns := 1
	if many >= 1_000_000 {
		turns = 5
	}
	for turn := range turns {
		t.Logf("an open, mapped, touched and closed: one of ten %v, one of all %v", touch("few", 0, 1000, few), touch("many", many/5*turn/few*few, 1000, many))
	}
	if now := n.status().Counters; now.Fills != c.Fills || now.OpenErrors > 0 {
		t.Errorf("%d batches were filled again, %d opens failed", now.Fills-c.Fills, now.OpenErrors)
	}
}

// kernelBytes is the memory of the kernel that is charged to a group; zero where
// that is not told apart.
func kernelBytes(t *testing.T, group string) int {
	t.Helper()
	if text, err := os.ReadFile(group + "/memory.kmem.usage_in_bytes"); err == nil {
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(t, err)
		return n
	}
	var n int
	for line := range strings.Lines(string(read(t, group+"/memory.stat"))) {
		fmt.Sscanf(line, "kernel %d", &n)
	}
	return n
}

// manyBytes is a file of so many zeros, each a record, and no block of a disk.
func manyBytes(t *testing.T, n int64) source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zeros")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(n))
	return source{path: path, uri: "file:" + path + "?as=fixed:1"}
}

// The size of a batch of millions of lines, and the record table of one of 64
// million records, take little of the daemon, however many processes ask; one that asks may
// be interrupted, and the others are answered.
func TestSizesOfManyLines(t *testing.T) {
	t.Parallel()
	const allBytes = 64_000_000
	many := int64(rounds(*records, 1_000_000))
	path := filepath.Join(t.TempDir(), "lines")
	must(t, os.WriteFile(path, bytes.Repeat([]byte("a\nbc\n"), int(many)/2), 0o600))
	n := start(t)
	n.create("lines", source{uri: "file:" + path + "?as=lines"}, "--batch", fmt.Sprint(many))
	n.create("bytes", manyBytes(t, allBytes), "--batch", fmt.Sprint(allBytes))
	before, most := n.resident(), 0
	ranks := []*rank{newRank(t), newRank(t), newRank(t), newRank(t)}
	interrupted := map[string]int{}
	// A rank that is interrupted may have been answered before, on a busy machine: then others try.
	for seed := 0; seed < len(ranks) || seed < 10*len(ranks) && (interrupted["stat"] == 0 || interrupted["open"] == 0); seed++ {
		hasty := ranks[seed%len(ranks)]
		batch := n.batch(fmt.Sprintf("lines@order=full,seed=%d", seed), 0, 0)
		first, call := order{Do: "stat", Path: batch}, unix.SYS_NEWFSTATAT // the kernel asks for it, and has the others wait
		if seed%2 == 1 {
			first, call = order{Do: "open", Name: "table", Path: batch + ".idx"}, unix.SYS_OPENAT
		}
		hasty.send(first)
		eventually.True(t, "it waits, or is answered", func() bool { return waitsIn(hasty, call) || hasty.answered() })
		for _, r := range ranks {
			if r != hasty {
				r.send(order{Do: "stat", Path: batch})
			}
		}
		must(t, unix.Tgkill(hasty.pid, hasty.tid, unix.SIGINT))
		for _, r := range ranks {
			switch a := r.receive(); {
			case r == hasty && a.Errno == "EINTR":
				interrupted[first.Do]++
			case r == hasty && first.Do == "open":
				t.Logf("seed %d: the table was open before its opener could be interrupted", seed)
			case a.Errno != "" || a.N != many/2*5:
				t.Errorf("seed %d: %+v, want %d bytes", seed, a, many/2*5)
			}
		}
		for _, r := range ranks {
			if a := r.open("lines", batch+".idx"); a.N != 8*(many+1) {
				t.Errorf("seed %d: a table of %d bytes", seed, a.N)
			}
		}
		most = max(most, n.resident())
	}
	if interrupted["stat"] == 0 || interrupted["open"] == 0 {
		t.Errorf("of those who were interrupted left: %v", interrupted)
	}
	for i, r := range ranks {
		table := n.batch(fmt.Sprintf("bytes@order=full,seed=%d", i), 0, 0) + ".idx"
		if a := r.open("bytes", table); a.N != 8*(allBytes+1) {
			t.Errorf("a table of %d bytes", a.N)
		}
		const numbers = 1 << 16
		from := allBytes / 5 * int64(i+1)
		r.send(order{Do: "read", Name: "bytes", Off: 8 * from, Len: 8 * numbers})
		var want []byte
		for i := range int64(numbers) {
			want = binary.LittleEndian.AppendUint64(want, uint64(from+i))
		}
		if a := r.receive(); a.Errno != "" || a.Sum != sumOf(want) {
			t.Errorf("numbers from %d on: %+v", from, a)
		}
		most = max(most, n.resident())
	}
	t.Logf("%d lines, %d records of a byte: %d KiB more at most", many, allBytes, most-before)
	if !race && most-before > 50<<10 {
		t.Errorf("the daemon had %d KiB more", most-before)
	}
}
