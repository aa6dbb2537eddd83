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
		HDFSWaits struct{ Files, Remote float64 } `json:"hdfs_waits"`
	}
	Facts struct {
		Source flow
		HDFS   ways
	}
}

type ways struct{ Files, Remote flow }

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

// A daemon beside a datanode reads its blocks by their files, and goes on right
// when the datanode is killed and its socket goes.
func TestLocalBlocksByFile(t *testing.T) {
	c := cluster.Exclusive(t)
	path := c.Dir(t) + "/f"
	content := lines(5000)
	c.Host("data1").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).start()
	d.create("train", path)
	// read fetches all of it anew.
	var before load
	read := func(when string) {
		t.Helper()
		before = d.load("train")
		d.Do("cache", "evict", "train")
		if got, err := d.read("train"); err != nil || got != content {
			t.Errorf("%s: other bytes, or %v", when, err)
		}
	}
	// share is how much of it came by a way, of which the waits know too.
	share := func(when string, way func(ways) flow, waited func(load) float64) {
		t.Helper()
		now := d.load("train")
		got := way(now.Facts.HDFS).Bytes - way(before.Facts.HDFS).Bytes
		if got != now.Facts.Source.Bytes-before.Facts.Source.Bytes || got < int64(len(content)) {
			t.Errorf("%s: %d bytes came so; stall says %+v, and %+v before", when, got, now, before)
		}
		if waited(now) <= waited(before) || waited(now) > now.Total.Waits.Source {
			t.Errorf("%s: nobody waited for them; stall says %+v, and %+v before", when, now, before)
		}
	}
	files := func(l load) float64 { return l.Total.HDFSWaits.Files }
	remote := func(l load) float64 { return l.Total.HDFSWaits.Remote }
	read("in peace")
	share("in peace", func(w ways) flow { return w.Files }, files)
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

	if err := c.Host("data1").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	read("without the datanode")
	d.Must("sh", "-c", "rm /run/datanode.*")
	eventually.Within(t, waitTime, "files of a datanode that is gone are given up", func() bool {
		_, err := d.Tool("sh", "-c", `! ls -l /proc/"$0"/fd | grep /blk_`, fmt.Sprint(d.PID()))
		return err == nil
	})
	read("without its socket")
	share("without its socket", func(w ways) flow { return w.Remote }, remote)
	if s := d.status().HDFS; !strings.HasPrefix(s.LocalBlocks, "over TCP: ") {
		t.Errorf("status says %+v", s)
	}
}
