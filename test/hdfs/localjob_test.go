package hdfs_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A job is ranks on a datanode's host that read a dataset over and over, by the
// files of its blocks where they can. The cache gives up between rounds what no
// rank has open. Ranks rest between rounds, unless the test waits for one: a datanode that
// is to begin anew needs the processors too.
type job struct {
	*place
	view, file string // file is in HDFS
	want       []string
	rounds     []atomic.Int64  // of each rank, all of them right
	more       []chan struct{} // has each rank begin a round at once
	told       atomic.Int64    // how often a rank was told that the file is another, or gone
	stop       atomic.Bool
	work       sync.WaitGroup

	// Before anything went wrong:
	open   map[string]int // descriptors of the daemon, by kind
	logged int            // bytes of its log, which has those of daemons before it
}

const (
	jobRanks = 2
	restTime = 2 * time.Second
)

// How many datanodes have the blocks of a job's file. Of those that are everywhere no
// replica is made elsewhere while a datanode is away, for which one would go when it is
// back.
const (
	twice      = 2
	everywhere = 3
)

// job starts a daemon, and ranks that read a new file there. They begin when they have
// read by file, and end with the test at the latest.
func (p *place) job(t *testing.T, file, content string, replicas int) *job {
	t.Helper()
	d := (&place{p.For(t), t, p.c}).start()
	view := path.Base(file)
	d.Host.Put(t, file, []byte(content), replicas, block)
	d.create(view, file, "--ranks", fmt.Sprint(jobRanks))
	return d.readers(view, file, content)
}

func (d *place) newJob(view, file string) *job {
	j := &job{place: d, view: view, file: file, rounds: make([]atomic.Int64, jobRanks)}
	for range jobRanks {
		j.more = append(j.more, make(chan struct{}, 1))
	}
	return j
}

func (d *place) readers(view, file, content string) *job {
	d.t.Helper()
	j := d.newJob(view, file)
	for i := range jobRanks {
		got, err := j.rank(i)
		if err != nil {
			d.t.Fatal(err)
		}
		j.want = append(j.want, got)
	}
	if !slices.Equal(sorted(strings.Join(j.want, "")), sorted(content)) {
		d.t.Fatal("the ranks read other lines than the file has")
	}
	j.open, j.logged = j.Descriptors(), len(j.Log())
	for i := range j.want {
		j.work.Go(func() { j.read(i) })
	}
	d.t.Cleanup(j.end)
	j.byFile("in peace")
	return j
}

// follow has ranks read all of a view over and over while its file becomes other versions
// in turn, or goes: what they read is whole, as one of these, or they are told.
func (d *place) follow(view, file string, versions ...string) *job {
	d.t.Helper()
	j := d.newJob(view, file)
	j.open = d.Descriptors()
	for i := range j.rounds {
		j.work.Go(func() {
			for !j.stop.Load() && !j.t.Failed() {
				j.readVersion(i, versions)
				j.rest(i)
			}
		})
	}
	d.t.Cleanup(j.end)
	return j
}

func (j *job) readVersion(i int, versions []string) {
	got, err := "", error(nil)
	if err = j.Evict(j.view); err == nil {
		got, err = j.place.read(j.view)
	}
	switch {
	case err == nil && slices.Contains(versions, got):
		j.rounds[i].Add(1)
	case err == nil:
		j.t.Errorf("a rank has read %d other bytes", len(got))
	case isOther(err):
		j.told.Add(1)
	default:
		j.t.Error(err)
	}
}

// isOther reports whether a program was told that a file is another than was indexed, or
// gone.
func isOther(err error) bool { return strings.Contains(err.Error(), "Stale file handle") }

// areTold waits until ranks were told of a change oftener than before.
func (j *job) areTold(before int64) {
	j.t.Helper()
	eventually.Within(j.t, waitTime, "ranks know that it is stale", func() bool { return j.told.Load() > before || j.t.Failed() })
}

func (j *job) rank(i int) (string, error) {
	j.Evict(j.view) // cannot be done where nothing more can be opened
	return j.Tool("sh", "-c", `cat "$0"/batch-*[0-9]`, fmt.Sprintf("%s/datasets/%s/rank-%d", j.Mount(), j.view, i))
}

func (j *job) read(i int) {
	for !j.stop.Load() {
		got, err := j.rank(i)
		switch {
		case err != nil:
			j.t.Errorf("rank %d: %v", i, err)
			return
		case got != j.want[i]:
			j.t.Errorf("rank %d has read other bytes", i)
			return
		}
		j.rounds[i].Add(1)
		j.rest(i)
	}
}

func (j *job) rest(i int) {
	select {
	case <-j.more[i]:
	case <-time.After(restTime):
	}
}

// hurry has each rank begin its next round at once.
func (j *job) hurry() {
	for _, more := range j.more {
		select {
		case more <- struct{}{}:
		default:
		}
	}
}

// end ends the readers. Then the daemon has no more open than before anything went
// wrong.
func (j *job) end() {
	j.stop.Store(true)
	j.work.Wait()
	if !j.t.Failed() {
		j.AwaitDescriptors(j.open)
	}
}

// check ends the test on an error.
func (j *job) check(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// goOn waits until each rank has read all once more, from here on. They are about to
// begin another round then.
func (j *job) goOn(when string) {
	j.t.Helper()
	var until []int64
	for i := range j.rounds {
		until = append(until, j.rounds[i].Load()+2)
	}
	eventually.Within(j.t, toolTime, when+": the ranks go on", func() bool {
		j.hurry()
		for i := range j.rounds {
			if j.rounds[i].Load() < until[i] {
				return j.t.Failed()
			}
		}
		return true
	})
}

// byFile waits until all that is read is, for a round.
func (j *job) byFile(when string) {
	j.t.Helper()
	j.hurry()
	eventually.Within(j.t, toolTime, when+": blocks are read by file", func() bool {
		from := j.status().HDFS
		if from.LocalBlocks != "short-circuit" {
			return j.t.Failed()
		}
		j.goOn(when)
		to := j.status().HDFS
		n := to.Bytes - from.Bytes
		return j.t.Failed() || n > 0 && to.Files-from.Files == n && to.LocalBlocks == "short-circuit"
	})
}

// overTCP waits until status says why they are not.
func (j *job) overTCP(when, cause string) {
	j.t.Helper()
	j.says(when, "over TCP: ", cause)
	j.goOn(when)
}

// says waits until status says how blocks are read, and why.
func (j *job) says(when, how, why string) {
	j.t.Helper()
	eventually.Within(j.t, toolTime, when+": status says "+how+why, func() bool {
		j.hurry()
		said := j.status().HDFS.LocalBlocks
		return j.t.Failed() || strings.HasPrefix(said, how) && strings.Contains(said, why)
	})
}

// blocks of the file that the host has.
func (j *job) blocks() (ids []uint64) {
	j.t.Helper()
	all, err := j.c.Blocks(j.t.Context(), j.file)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, b := range all {
		if j.Host.HasReplica(b.ID) {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// askAnew has the datanode be asked for each block's files: those that are open
// have changed, though not in what they hold.
func (j *job) askAnew() {
	j.t.Helper()
	for _, id := range j.blocks() {
		sums, err := j.Host.Sums(id)
		if err == nil {
			err = os.Chmod(sums, 0o644)
		}
		if err != nil {
			j.t.Fatal(err)
		}
	}
}

// withdrawn reports whether the namenode no longer names this host for a block.
func (j *job) withdrawn(id uint64) bool {
	all, err := j.c.Blocks(j.t.Context(), j.file)
	i := slices.IndexFunc(all, func(b cluster.Block) bool { return b.ID == id })
	return err == nil && i >= 0 && !slices.Contains(all[i].Hosts, j.Host.Name)
}
