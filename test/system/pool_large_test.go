package system_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	partMiB  = flag.Int("part-mib", 96, "MiB of a part of the shuffle pool that has all bytes of its stage")
	poolMaps = flag.Int("pool-maps", 2000, "maps of a stage of the shuffle pool, at most 2^18")
)

// anonymous is the memory of the daemon that no file has, in MiB: Go's heap, above all.
func (n *node) anonymous() int {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	must(n.t, err)
	m := regexp.MustCompile(`RssAnon:\s*(\d+) kB`).FindSubmatch(text)
	if m == nil {
		n.t.Fatalf("no RssAnon in\n%s", text)
	}
	kB, err := strconv.Atoi(string(m[1]))
	must(n.t, err)
	return kB >> 10
}

// python runs a script, for as long as the test may take.
func (n *node) python(script string, args ...any) string {
	n.t.Helper()
	words := []string{"-c", script}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	out, err := exec.CommandContext(n.t.Context(), "python3", words...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A part may have all bytes of its stage, and be larger than all memory that batches have:
// it is made on a disk, and none of it is on the heap.
func TestLargePart(t *testing.T) {
	t.Parallel()
	const each = 8
	maps := *partMiB / each
	p := newNode(t)
	must(t, os.Mkdir(p.at, 0o700))
	n := p.startPool("--ram", "64MiB", "--pool-ram", "32MiB",
		"--pool-nvme", fmt.Sprintf("%s/pool:%dMiB", p.at, 2**partMiB), "--nvme", fmt.Sprintf("%s/cache:%dMiB", p.at, 2**partMiB), "--nvme-floor", "1%")
	stage := n.mount + "/shuffle/job/stage"
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"`, stage, fmt.Sprintf("maps=%d parts=3 copies=1", maps))
	got := n.python(`
import os, struct, sys
stage, maps, mib = sys.argv[1], *map(int, sys.argv[2:])
def block(number, n):
    return struct.pack("<QQ", number, n) * 65536
for number in range(maps):
    name = f"{stage}/.map-{number:06d}.0"
    with open(name, "wb", buffering=0) as f:
        for n in range(mib):
            f.write(block(number, n))
    with open(name + ".idx", "wb") as f:
        f.write(struct.pack("<4Q", 0, 0, mib << 20, mib << 20))
    os.rename(name, f"{stage}/map-{number:06d}")
with open(f"{stage}/part-000001", "rb", buffering=0) as f:
    for number in range(maps):
        for n in range(mib):
            got = b""
            while len(got) < 1 << 20:
                more = f.read((1 << 20) - len(got))
                assert more, (number, n, len(got))
                got += more
            assert got == block(number, n), (number, n)
    assert not f.read(1)
print(*(os.stat(f"{stage}/part-00000{part}").st_size for part in range(3)))
with open(f"{stage}/part-000001.idx", "rb") as f:
    assert f.read() == b"".join(struct.pack("<Q", i * mib << 20) for i in range(maps + 1))
`, stage, maps, each)
	if want := fmt.Sprintf("0 %d 0\n", maps*each<<20); got != want {
		t.Errorf("sizes of parts: %swant %s", got, want)
	}
	if has := n.anonymous(); has > 64 {
		t.Errorf("after a part of %d MiB the daemon has %d MiB that no file has", *partMiB, has)
	}
	n.ok("shuffle", "rm", "job")
}

// A part that is sorted may be larger than all memory of the pool, too: of its maps, which are
// on a disk, it takes a few portions at a time, whatever it has.
func TestLargeSortedPart(t *testing.T) {
	t.Parallel()
	const each, record = 4, 64
	maps := *partMiB / each
	p := newNode(t)
	must(t, os.Mkdir(p.at, 0o700))
	n := p.startPool("--ram", "64MiB", "--pool-ram", "32MiB",
		"--pool-nvme", fmt.Sprintf("%s/pool:%dMiB", p.at, 2**partMiB), "--nvme", fmt.Sprintf("%s/cache:%dMiB", p.at, 2**partMiB), "--nvme-floor", "1%")
	stage := n.mount + "/shuffle/job/stage"
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"`, stage, fmt.Sprintf("maps=%d copies=1 record=fixed:%d key=1-8 sort=key", maps, record))
	n.python(`
import os, struct, sys
stage, maps, records, size = sys.argv[1], *map(int, sys.argv[2:])
for number in range(maps):
    name = f"{stage}/.map-{number:06d}.0"
    with open(name, "wb") as f:
        for k in range(records): # each key once, in no order, of all maps in turn
            key = (k * 40503 % records) * maps + number
            f.write(struct.pack(">Q", key) + bytes([key % 251]) * (size - 8))
    os.rename(name, f"{stage}/map-{number:06d}")
`, stage, maps, each<<20/record, record)
	before := n.anonymous()
	most := n.mostAnonymous(func() {
		n.python(`
import struct, sys
stage, records, size = sys.argv[1], *map(int, sys.argv[2:])
with open(f"{stage}/part-000000", "rb") as f:
    for key in range(records):
        assert f.read(size) == struct.pack(">Q", key) + bytes([key % 251]) * (size - 8), key
    assert not f.read(1)
`, stage, *partMiB<<20/record, record)
	})
	if more := most - before; more > 24*shadow {
		t.Errorf("while a part of %d MiB was merged the daemon had %d MiB more that no file has", *partMiB, more)
	}
	n.ok("shuffle", "rm", "job")
}

// A stage may have very many maps, every other of them empty. They are listed, and are in the
// parts in their order; and what the daemon knows of them is bounded.
func TestManyMaps(t *testing.T) {
	t.Parallel()
	maps := rounds(*poolMaps, 500)
	pool := 32 + maps>>6 // MiB: a map and its table take two pages
	n := newNode(t).startPool("--ram", fmt.Sprintf("%dMiB", pool+64), "--pool-ram", fmt.Sprintf("%dMiB", pool))
	stage := n.mount + "/shuffle/job/stage"
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"`, stage, fmt.Sprintf("maps=%d parts=2 copies=1", maps))
	before := n.anonymous()
	got := n.python(`
import itertools, os, struct, sys, threading
stage, maps = sys.argv[1], int(sys.argv[2])
def of(number):
    return b"" if number % 2 else struct.pack("<Q", number)
def commit(name, map): # again, when the cluster has not said what became of it
    for again in range(9):
        try:
            return os.rename(name, map)
        except FileNotFoundError:
            assert again and os.path.exists(map), name
            return
        except TimeoutError:
            pass
    sys.exit(f"{name} is not committed")
next_map, failed = itertools.count(), []
def write():
    try:
        while (number := next(next_map)) < maps:
            name = f"{stage}/.map-{number:06d}.0"
            with open(name + ".idx", "wb") as f:
                f.write(struct.pack("<3Q", 0, 0, len(of(number))))
            with open(name, "wb") as f:
                f.write(of(number))
            commit(name, f"{stage}/map-{number:06d}")
    except Exception as e:
        failed.append(e)
threads = [threading.Thread(target=write) for _ in range(32)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed[0]
assert sorted(os.listdir(stage)) == [f"map-{number:06d}" for number in range(maps)] + ["spec", "state"]
assert open(f"{stage}/part-000000", "rb").read() == b""
assert open(f"{stage}/part-000001", "rb").read() == b"".join(map(of, range(maps)))
begins = list(itertools.accumulate((len(of(number)) for number in range(maps)), initial=0))
assert open(f"{stage}/part-000001.idx", "rb").read() == struct.pack(f"<{maps+1}Q", *begins)
few = f"{stage}/part-000001@maps={maps-9}-{maps-1}"
assert open(few, "rb").read() == b"".join(map(of, range(maps - 9, maps)))
print(open(f"{stage}/state").readline())
`, stage, maps)
	if !strings.Contains(got, "sealed") {
		t.Errorf("%s", got)
	}
	more, most := n.anonymous()-before, shadow*(64+maps>>7) // 8 KiB a map, with what the collector has not freed yet
	t.Logf("of %d maps the daemon has %d MiB that no file has", maps, more)
	if more > most {
		t.Errorf("that is more than %d MiB", most)
	}
	n.ok("shuffle", "rm", "job")
}
