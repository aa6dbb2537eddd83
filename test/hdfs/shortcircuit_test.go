package hdfs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A load is what stall tells of a job.
type load struct {
	Total struct {
		Waits     struct{ Source float64 }
		HDFSWaits ways[float64] `json:"hdfs_waits"`
	}
	Facts struct {
		Source flow
		HDFS   ways[flow]
	}
}

// Ways are those that bytes of HDFS come by.
type ways[T any] struct {
	Files    T
	LocalTCP T `json:"local_tcp"`
	Remote   T
}

type flow struct{ Bytes int64 }

// load is that of the one job that reads a dataset; nothing if none has.
func (d *place) load(name string) load {
	d.t.Helper()
	text := d.Do("--json", "stall", name)
	var all []load
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		d.t.Fatalf("%v: %s", err, text)
	}
	if len(all) == 0 {
		return load{}
	}
	return all[0]
}

// A daemon beside a datanode reads its blocks by their files, over TCP while its socket is
// away, and from other hosts when the datanode is killed: each is counted as what it is.
func TestLocalBlocksByFile(t *testing.T) {
	c := cluster.MountsAlone(t)
	path := c.Dir(t) + "/f"
	content := lines(5000)
	c.Host("data1").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).start()
	d.create("whole", path, "--as", "files") // reads nothing of it
	if s := d.status().HDFS; s.LocalBlocks != "none was asked for yet" || s.Bytes != 0 {
		t.Errorf("before the first block status says %+v", s)
	}
	d.create("train", path)
	read := func(when string) {
		t.Helper()
		d.Do("cache", "evict", "train")
		if got, err := d.read("train"); err != nil || got != content {
			t.Errorf("%s: other bytes, or %v", when, err)
		}
	}
	// came reads all of it anew, and holds that it came by one way alone, of which the
	// waits know too.
	came := func(when string, by func(ways[flow]) flow, waited func(ways[float64]) float64) {
		t.Helper()
		before, had := d.load("train"), d.status().HDFS
		read(when)
		now, has := d.load("train"), d.status().HDFS
		was, is := before.Facts.HDFS, now.Facts.HDFS
		got := by(is).Bytes - by(was).Bytes
		if got != now.Facts.Source.Bytes-before.Facts.Source.Bytes || got < int64(len(content)) {
			t.Errorf("%s: %d bytes came so; stall says %+v, and %+v before", when, got, is, was)
		}
		one, all := waited(now.Total.HDFSWaits), now.Total.Waits.Source
		if one <= waited(before.Total.HDFSWaits) || one > all {
			t.Errorf("%s: no open waited for them; stall says %+v, and %+v before", when, now.Total, before.Total)
		}
		grown := ways[flow]{
			Files:    flow{int64(has.Files - had.Files)},
			LocalTCP: flow{int64(has.LocalTCP - had.LocalTCP)},
			Remote:   flow{int64(has.Remote - had.Remote)},
		}
		if n := int64(has.Bytes - had.Bytes); by(grown).Bytes != n || n < int64(len(content)) {
			t.Errorf("%s: of %d bytes from datanodes these came by each way: %+v", when, n, grown)
		}
	}
	byFile := func(when string) {
		t.Helper()
		came(when, func(w ways[flow]) flow { return w.Files }, func(w ways[float64]) float64 { return w.Files })
	}
	byFile("in peace")
	if plan := d.Do("plan", "train"); !strings.Contains(plan, "blocks of this node: short-circuit") {
		t.Errorf("the plan is %s", plan)
	}
	s := d.status().HDFS
	if s.LocalBlocks != "short-circuit" || s.Files < uint64(len(content)) || s.Files != s.Bytes || s.Files != s.Local {
		t.Errorf("status says %+v", s)
	}
	open := d.Must("sh", "-c", `ls -l /proc/"$0"/fd | grep -c /blk_`, fmt.Sprint(d.PID()))
	if want := fmt.Sprintln(2 * ((len(content) + block - 1) / block)); open != want {
		t.Errorf("%s descriptors of blocks are open, want %s", open, want)
	}

	socket := d.socket()
	d.Must("mv", socket, "/run/aside")
	came("over TCP", func(w ways[flow]) flow { return w.LocalTCP }, func(w ways[float64]) float64 { return w.LocalTCP })
	d.Must("mv", "/run/aside", socket)
	byFile("by its socket again")

	if err := c.Host("data1").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	read("without the datanode")
	d.Must("rm", socket)
	eventually.Within(t, waitTime, "files of a datanode that is gone are given up", func() bool {
		_, err := d.Tool("sh", "-c", `! ls -l /proc/"$0"/fd | grep /blk_`, fmt.Sprint(d.PID()))
		return err == nil
	})
	came("without its socket", func(w ways[flow]) flow { return w.Remote }, func(w ways[float64]) float64 { return w.Remote })
	if s := d.status().HDFS; !strings.HasPrefix(s.LocalBlocks, "over TCP: ") {
		t.Errorf("status says %+v", s)
	}
}
