package system_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var recordMiB = flag.Int("record-mib", 64, "MiB of the longest records of a stage of the shuffle pool, at most 1024")

// mostAnonymous is how much memory that no file has the daemon has at most while do is done, in MiB.
func (n *node) mostAnonymous(do func()) (most int) {
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, n.anonymous())
			}
		}
	})
	do()
	close(done)
	watch.Wait()
	return most
}

// A record may have 1 GiB, in whichever form: it is divided, sorted and merged, from memory and
// from a disk, where memory has room for little beside it, and never is on the heap.
func TestLongRecords(t *testing.T) {
	t.Parallel()
	size := *recordMiB << 20
	p := newNode(t)
	must(t, os.Mkdir(p.at, 0o700))
	pool := *recordMiB*2 + *recordMiB/4
	n := p.startPool("--ram", fmt.Sprintf("%dMiB", pool+64), "--pool-ram", fmt.Sprintf("%dMiB", pool),
		"--pool-nvme", fmt.Sprintf("%s/pool:%dMiB", p.at, 3**recordMiB), "--nvme", fmt.Sprintf("%s/cache:%dMiB", p.at, 3**recordMiB), "--nvme-floor", "1%")
	for kind, spec := range map[string]string{
		"line":  "record=line sort=key",
		"sizes": "record=sizes key=1-8 sort=key",
		"fixed": fmt.Sprintf("record=fixed:%d key=1-8 by=range", size),
	} {
		stage := n.mount + "/shuffle/job/" + kind
		sh(t, `mkdir -p "$1"; echo "maps=2 copies=1 $2" > "$1/spec"`, stage, spec)
		before := n.anonymous()
		most := n.mostAnonymous(func() { n.python(longRecords, stage, kind, size) })
		after := n.anonymous()
		t.Logf("%s: before %d MiB, at most %d MiB, after %d MiB", kind, before, most, after)
		if room := *recordMiB * 9 / 2; most > before+room+24*shadow || after > before+24*shadow {
			t.Errorf("%s: of the memory that no file has records of %d MiB take more than %d MiB, or some stays", kind, *recordMiB, room)
		}
		if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(state, "sealed") {
			t.Errorf("%s: %s", kind, state)
		}
		n.ok("shuffle", "rm", "job")
	}
}

// longRecords commits two maps with a long record each, the one after the other, and reads the
// part. The first map goes to the disk, as the second takes its room.
const longRecords = `
import itertools, os, struct, sys
stage, kind, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
def record(key, n): # in pieces, n bytes with all that stands before and after
    if kind == "sizes":
        yield struct.pack("<I", n - 4)
        n -= 4
    if kind == "line":
        n -= 1
    yield key
    n -= len(key)
    block = key * (1 << 17)
    while n > 0:
        yield block[:n]
        n -= len(block[:n])
    if kind == "line":
        yield b"\n"
few = () if kind == "fixed" else (100, 30)
maps = [[(b"zzzzzzzz", few), (b"mmmmmmmm", (size,)), (b"aaaaaaaa", few)], [(b"bbbbbbbb", few), (b"nnnnnnnn", (size,)), (b"yyyyyyyy", few)]]
for number, of in enumerate(maps):
    with open(f"{stage}/.map-00000{number}.0", "wb") as f:
        for key, sizes in of:
            for n in sizes:
                f.writelines(record(key, n))
    os.rename(f"{stage}/.map-00000{number}.0", f"{stage}/map-00000{number}")
at = [0]
with open(f"{stage}/part-000000", "rb") as f:
    for key, sizes in sorted(itertools.chain(*maps)):
        for n in sorted(sizes) if kind == "line" else sizes:
            for piece in record(key, n):
                assert f.read(len(piece)) == piece, (key, n)
            at.append(at[-1] + n)
    assert not f.read(1)
with open(f"{stage}/part-000000.idx", "rb") as f:
    assert f.read() == struct.pack(f"<{len(at)}Q", *at)
`
