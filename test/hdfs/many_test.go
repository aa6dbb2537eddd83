package hdfs_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"rankfs/test/cluster"
)

// Most files are empty. To make one takes 16 writers 0.3 ms of two cores, of
// which the namenode has most, and one with content 2 to 4 ms, which the
// datanodes share. So they are the snapshots of a directory, between which one in ten of
// those that have content is written anew.
const (
	manyFiles = 100_000
	snapshots = 10
	perBatch  = 1024
)

var filled = flag.Bool("filled", false, "give each of the many small files content, not one in 40")

// withBytes is how many files there are for one with content.
func withBytes() int {
	if *filled {
		return 1
	}
	return 40
}

const inSnapshot = manyFiles / snapshots

// writtenIn is the snapshot for which the file that is i-th of all was written last.
func writtenIn(i int) int {
	n := i / inSnapshot
	return max(0, n-(i%inSnapshot/withBytes()+n)%snapshots)
}

func contentOf(i int) string {
	if i%withBytes() != 0 {
		return ""
	}
	i = writtenIn(i)*inSnapshot + i%inSnapshot
	return fmt.Sprintf("file %06d %s\n", i, strings.Repeat("x", i/withBytes()%300))
}

// makeMany makes the files, and returns the directory that has all of them.
func makeMany(t *testing.T, c *cluster.Cluster, dir string) string {
	t.Helper()
	root, err := c.Host("data1").HDFS("root")
	check(t, err)
	t.Cleanup(func() { root.Close() })
	dir += "/files"
	check(t, errors.Join(root.Mkdir(dir, 0o755), root.AllowSnapshots(dir)))
	for n := range snapshots {
		const writers = 16
		errs := make([]error, writers)
		var work sync.WaitGroup
		for w := range writers {
			work.Go(func() { errs[w] = makeSome(c.Host(fmt.Sprintf("data%d", 1+w%3)), dir, n, w, writers) })
		}
		work.Wait()
		check(t, errors.Join(errs...))
		_, err := root.CreateSnapshot(dir, fmt.Sprint(n))
		check(t, err)
		t.Cleanup(func() { check(t, root.DeleteSnapshot(dir, fmt.Sprint(n))) })
	}
	return dir + "/.snapshot"
}

func makeSome(h *cluster.Host, dir string, snapshot, first, step int) error {
	client, err := h.HDFS("root")
	if err != nil {
		return err
	}
	defer client.Close()
	for i := first; i < inSnapshot; i += step {
		name := fmt.Sprintf("%s/%06d", dir, i)
		content := contentOf(snapshot*inSnapshot + i)
		if snapshot > 0 {
			if content == "" || writtenIn(snapshot*inSnapshot+i) != snapshot {
				continue
			}
			if err := client.Remove(name); err != nil {
				return err
			}
		}
		w, err := client.CreateFile(name, 1, 1<<20, 0o644) // Create would look first
		if err == nil && content != "" {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			return err
		}
		if err := cluster.Finish(w); err != nil {
			return err
		}
	}
	return nil
}

// A hundred thousand small files are a dataset like any other: found, divided,
// listed and read, each once, without memory for all that HDFS says of them.
func TestManySmallFiles(t *testing.T) {
	c := cluster.Mounts(t)
	all := makeMany(t, c, c.Dir(t))
	d := newPlace(t, c, "data1").start()
	d.create("many", all, "--batch", strconv.Itoa(perBatch))

	var shown struct{ Records, Chunks, Steps int }
	if err := json.Unmarshal([]byte(d.Do("--json", "dataset", "show", "many")), &shown); err != nil {
		t.Fatal(err)
	}
	const batches = (manyFiles + perBatch - 1) / perBatch
	if shown.Records != manyFiles || shown.Steps != batches {
		t.Errorf("the dataset is %+v", shown)
	}
	if shown.Chunks < manyFiles/1000 || shown.Chunks > manyFiles/100 {
		t.Errorf("%d files are %d chunks", manyFiles, shown.Chunks)
	}
	t.Run("none", func(t *testing.T) {
		for i, r := range d.records("many") {
			if r != contentOf(i) {
				t.Fatalf("record %d is %q", i, r)
			}
		}
	})
	t.Run("full", func(t *testing.T) {
		var want []string
		for i := range manyFiles {
			want = append(want, contentOf(i))
		}
		got := d.records("many@order=full")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Error("other files than there are")
		}
	})
	if n := strings.Count(d.Must("ls", d.Dir+"/mnt/datasets/many/rank-0"), ".idx\n"); n != batches {
		t.Errorf("%d of %d batches are listed", n, batches)
	}
	table := strings.Split(strings.TrimSpace(d.Must("cat", d.Dir+"/mnt/datasets/many/locality")), "\n")
	if len(table) != 1+batches {
		t.Errorf("locality has %d lines", len(table))
	}
	for _, line := range table[1:] {
		if !*filled && !strings.Contains(line, "data1,data3") { // where those with content were written
			t.Fatalf("locality says %q", line)
		}
	}
	if most := d.mostMemory(); most > 300<<20 {
		t.Errorf("the daemon had %d MiB", most>>20)
	}
}

// mostMemory is what the daemon has had at any time.
func (d *place) mostMemory() (bytes int64) {
	d.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	if err != nil {
		d.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &bytes); err != nil {
		d.t.Fatal(err)
	}
	return bytes << 10
}

// records are those of a view of one rank, by what the tables beside its
// batches say.
func (d *place) records(view string) (records []string) {
	d.t.Helper()
	content, err := d.read(view)
	if err != nil {
		d.t.Fatal(err)
	}
	offsets := d.Must("sh", "-c", `cat "$0"/rank-0/batch-*.idx`, d.Dir+"/mnt/datasets/"+view)
	for len(offsets) > 0 {
		n := min(perBatch, len(offsets)/8-1)
		at := uint64(0)
		for i := range n {
			next := binary.LittleEndian.Uint64([]byte(offsets[8*(i+1):]))
			records = append(records, content[at:next])
			at = next
		}
		content, offsets = content[at:], offsets[8*(n+1):]
	}
	if len(content) > 0 {
		d.t.Errorf("%d bytes are in no record", len(content))
	}
	return records
}
