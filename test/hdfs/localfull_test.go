package hdfs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// The daemon may open nothing more, or little, while the files of its host's blocks
// have to be asked for: no byte is wrong, no read fails, but waits where it cannot be done,
// which the log says, no replica is held for corrupt, and when there is room again blocks
// are read by file.
func TestLocalBlocksWithoutDescriptors(t *testing.T) {
	c := cluster.MountsAlone(t)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	dir := c.Dir(t)
	j := p.job(t, dir+"/full", lines(5000), twice)
	var was unix.Rlimit
	check(t, unix.Prlimit(j.PID(), unix.RLIMIT_NOFILE, nil, &was))
	bound := func(n uint64) {
		t.Helper()
		check(t, unix.Prlimit(j.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}, nil))
	}
	t.Cleanup(func() { bound(was.Cur) })
	open := func() int {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", j.PID()))
		check(t, err)
		return len(all)
	}
	for spare := range 8 {
		bound(uint64(open() + 7 - spare))
		j.askAnew()
		rounds, logged := j.rounds[0].Load(), len(j.Log())
		eventually.Within(t, toolTime, "the ranks read on, or it is said why they wait", func() bool {
			j.hurry()
			return j.rounds[0].Load() > rounds+3 || strings.Contains(j.Log()[logged:], "replica given up") || t.Failed()
		})
		bound(was.Cur)
		j.byFile("with room again")
	}

	file, content := dir+"/beside", lines(200)
	j.Host.Put(t, file, []byte(content), twice, block)
	j.create("beside", file)
	if text, err := j.place.read("beside"); err != nil || text != content {
		t.Errorf("other bytes, or %v", err)
	}
	all, err := c.Blocks(t.Context(), file)
	check(t, err)
	j.Do("cache", "evict", "beside")
	j.giveUp(all[0].ID)
	logged := len(j.Log())
	const attempt = 2 * 2 // gives up both replicas, and where they are is asked once more
	bound(3)              // which are taken: now nothing can be opened
	got := make(chan string, 1)
	go func() {
		text, err := j.place.read("beside")
		got <- fmt.Sprint(text, err)
	}()
	eventually.Within(t, toolTime, "it is said why a read waits: it is tried again, or has no file for what it would read", func() bool {
		log := j.Log()[logged:]
		return len(got) > 0 || strings.Count(log, "replica given up") > attempt || strings.Contains(log, "lacks a file")
	})
	bound(was.Cur)
	if <-got != fmt.Sprint(content, error(nil)) {
		t.Error("what waited has other bytes, or an error")
	}
	j.giveUp(all[0].ID)
	j.byFile("with room again")
	if s := j.status().HDFS; s.Corrupt != 0 {
		t.Errorf("status says %+v", s)
	}
	if log := j.Log(); !strings.Contains(log, "too many open files: raise the limit of open files") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	j.end()
}
