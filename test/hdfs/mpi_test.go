package hdfs_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// corpus makes data that readers verify by their checksums alone, and puts it
// into HDFS.
func corpus(t *testing.T, c *cluster.Cluster, dir, kind string, n int) (path, sums string) {
	t.Helper()
	local := t.TempDir()
	data, sums := filepath.Join(local, kind), filepath.Join(local, "sums")
	made := exec.Command("go", "run", "rankfs/test/makedata", kind, "-n", strconv.Itoa(n), "-checksums", sums, "-o", data)
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path = dir + "/" + kind
	check(t, filepath.WalkDir(data, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil {
			c.Host("data2").Put(t, path+strings.TrimPrefix(name, data), content, 2, 256<<10)
		}
		return err
	}))
	return path, sums
}

// MPI ranks in C map the batches of datasets in HDFS, and together see every
// record exactly once, in every order, while their neighbours hold all batches
// that they have read.
func TestMPIRanks(t *testing.T) {
	c := cluster.Mounts(t)
	dir := c.Dir(t)
	p := newPlace(t, c, "data1")
	p.Options("--nvme", p.Dir+"/nvme:128MiB")
	d := p.start()
	verify := daemon.Built(t, "map_verify")
	for _, test := range []struct {
		kind, as string
		records  int
		check    []string
	}{
		{"lines", "lines", 20_000, nil},
		{"fixed", "fixed:4096", 1500, []string{"-g", "0"}},
		{"tree", "files", 200, nil},
		{"datum", "lmdb", 1500, []string{"-d"}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			path, sums := corpus(t, c, dir, test.kind, test.records)
			d.create(test.kind, path+"?as="+test.as, "--ranks", "4", "--batch", strconv.Itoa(test.records/50))
			for _, view := range []string{"", "@order=full,seed=5", "@order=window:100,epoch=3", "@tail=pad,order=full,ranks=3", "@batch=chunk,ranks=2"} {
				ranks := 4
				if _, n, named := strings.Cut(view, "ranks="); named {
					ranks, _ = strconv.Atoi(n)
				}
				line := append([]string{strconv.Itoa(ranks), verify, "-m", "-r"}, test.check...)
				out := d.Must("../mpi/run", append(line, d.Dir+"/mnt/datasets/"+test.kind+view, sums)...)
				want := []string{fmt.Sprintf("OK ranks=%d ", ranks), fmt.Sprintf(" records=%d ", test.records)}
				if !strings.Contains(out, want[0]) || !strings.Contains(out, want[1]) {
					t.Errorf("%s: %s", view, out)
				}
			}
		})
	}
	if h := d.status().HDFS; h.Failures != 0 || h.Corrupt != 0 {
		t.Errorf("status says %+v", h)
	}
}
