package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs below test/mpi, as jobs run them.
const programs = "../mpi/"

// corpus makes data that its readers can verify without the source, and the
// checksums of its records.
func corpus(t *testing.T, kind string, n int) (path, sums string) {
	t.Helper()
	dir := t.TempDir()
	path, sums = filepath.Join(dir, "data"), filepath.Join(dir, "sums")
	program(t, "go", "run", "rankfs/test/makedata", kind, "-n", fmt.Sprint(n), "-checksums", sums, "-o", path)
	return path, sums
}

func mpirun(t *testing.T, ranks int, args ...string) string {
	t.Helper()
	args[0] = programs + "bin/" + args[0]
	return program(t, append([]string{programs + "run", fmt.Sprint(ranks)}, args...)...)
}

// program runs a program that must succeed, and returns what it printed.
func program(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, args...)
	if r.code != 0 {
		t.Fatalf("%s: %v", strings.Join(args, " "), r)
	}
	return r.out
}

// MPI ranks map their batches and together see every record exactly once, in
// every order, and hold the mappings while the rest of the epoch goes by.
func TestMPIRanksVerifyEveryByte(t *testing.T) {
	t.Parallel()
	const records = 3000
	images, sums := corpus(t, "datum", records)
	n := start(t)
	n.ok("dataset", "create", "images", "--source", "lmdb:"+images, "--ranks", "4", "--batch", "64")
	for _, view := range []string{
		"images", "images@order=full,seed=5", "images@order=window:500,epoch=3",
		"images@tail=pad,order=full", "images@ranks=3", "images@batch=chunk,ranks=2",
	} {
		ranks := 4
		for _, r := range []int{2, 3} {
			if strings.Contains(view, fmt.Sprintf("ranks=%d", r)) {
				ranks = r
			}
		}
		out := mpirun(t, ranks, "map_verify", "-d", "-m", "-r", n.path(view), sums)
		if !strings.Contains(out, fmt.Sprintf("OK ranks=%d ", ranks)) || !strings.Contains(out, fmt.Sprintf(" records=%d ", records)) {
			t.Errorf("%s: %s", view, out)
		}
	}
}

// The order of an epoch is the same for any number of ranks.
func TestMPIOrderDoesNotDependOnRanks(t *testing.T) {
	t.Parallel()
	images, sums := corpus(t, "datum", 2000)
	n := start(t)
	n.ok("dataset", "create", "images", "--source", "lmdb:"+images, "--ranks", "4", "--batch", "64", "--order", "full")
	orders := make(map[string]bool)
	for _, ranks := range []int{1, 2, 4} {
		out := mpirun(t, ranks, "map_verify", n.path(fmt.Sprintf("images@ranks=%d", ranks)), sums)
		_, order, _ := strings.Cut(out, " order=")
		orders[strings.Fields(order)[0]] = true
	}
	if len(orders) != 1 {
		t.Errorf("orders for 1, 2 and 4 ranks: %v", orders)
	}
}

// The seed's consumer loop: a step at a time, with a collective in each.
func TestMPIConsumerLoop(t *testing.T) {
	t.Parallel()
	data, _ := corpus(t, "fixed", 4000)
	n := start(t)
	n.ok("dataset", "create", "d", "--source", "file:"+data, "--as", "fixed:4096", "--ranks", "2", "--batch", "100")
	var sums []string
	for _, mode := range []string{"-i", "-k0"} { // in place, and copied out
		out := mpirun(t, 2, "consume", mode, n.path("d"))
		if !strings.Contains(out, "steps=20 ") {
			t.Errorf("consume %s: %s", mode, out)
		}
		_, sum, _ := strings.Cut(out, " sum=")
		sums = append(sums, strings.Fields(sum)[0])
	}
	if sums[0] != sums[1] {
		t.Errorf("sums in place and copied out: %v", sums)
	}
}

// A program of the named-pipe protocol, in C, fed by rankfs supply.
func TestSupplyFeedsThePapersClient(t *testing.T) {
	t.Parallel()
	data, _ := corpus(t, "fixed", 512)
	n := start(t)
	n.ok("dataset", "create", "d", "--source", "file:"+data, "--as", "fixed:4096", "--ranks", "2", "--batch", "64")
	want := strings.Fields(cut(t, sh(t, programs+"bin/cycle_consume $1 4 -i -p 2", n.path("d")), " sum="))[0]
	dir := t.TempDir()
	sh(t, `cd $1; for i in 0 1; do echo $1/map-$i >>maps; echo $1/pipe-$i >>pipes; done`, dir)
	n.ok("supply", "--check", "--maps", dir+"/maps", "--pipes", dir+"/pipes", "--dataset", "d")
	got := sh(t, `
		"$1" --run "$2" supply --maps "$3/maps" --pipes "$3/pipes" --dataset d & supplier=$!
		trap 'kill $supplier 2>/dev/null || true; wait $supplier || true' EXIT
		"$4" "$3/maps" "$3/pipes" 0 4 -i -p 2`, rankfs, n.run, dir, programs+"bin/seed_client")
	if !strings.Contains(got, " sum="+want) {
		t.Errorf("the client's sum is not %s:\n%s", want, got)
	}
}

func cut(t *testing.T, text, after string) string {
	t.Helper()
	i := strings.LastIndex(text, after)
	if i < 0 {
		t.Fatalf("no %q in %s", after, text)
	}
	return text[i+len(after):]
}

// Shell tools and fio on the whole tree.
func TestShellAndFio(t *testing.T) {
	t.Parallel()
	data, _ := corpus(t, "lines", 20000)
	n := start(t)
	n.ok("dataset", "create", "d", "--source", "file:"+data, "--ranks", "2", "--batch", "500", "--order", "full")
	program(t, programs+"shellcheck", n.mount, "d")
	out := program(t, programs+"fio.sh", "-t", "1", n.path("d", "rank-0"))
	for _, engine := range []string{"engine=mmap", "engine=psync"} {
		if !strings.Contains(out, engine) {
			t.Errorf("no %s in:\n%s", engine, out)
		}
	}
	if reads := n.status().Counters.BatchReads; reads != 0 {
		t.Errorf("%v READ requests for batches reached the daemon", reads)
	}
}

// The C header: records by number, an empty batch, and a batch that is not there.
func TestCHeader(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.create("d", newLines(t, 1000), "--batch", "300", "--ranks", "2")
	for _, file := range []string{n.batch("d", 0, 0), n.batch("d", 1, 1), n.batch("d@batch=800", 1, 0)} {
		out := program(t, programs+"bin/records", file)
		sizes := make(map[string]int64)
		for _, f := range []string{file, file + ".idx"} {
			info, err := os.Stat(f)
			must(t, err)
			sizes[f] = info.Size()
		}
		want := readBatch(t, file, sizes)
		sum, bytes := 0, 0
		for _, r := range want {
			bytes += len(r)
			for _, b := range r {
				sum += int(b)
			}
		}
		if w := fmt.Sprintf("records n=%d bytes=%d sum=%d\n", len(want), bytes, sum); out != w {
			t.Errorf("%s: %swant %s", file, out, w)
		}
	}
	if r := command(t, programs+"bin/records", n.path("d", "rank-0", "batch-999999")); r.code != 1 || !strings.Contains(r.err, "No such file") {
		t.Errorf("a batch that is not there: %v", r)
	}
}
