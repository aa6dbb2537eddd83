package hdfs_test

import (
	"fmt"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/hadoop"
)

// The bounds of what these tests wait for; they turn a hang into a failure.
const (
	toolTime = 150 * time.Second // one command: an open may wait for two minutes
	javaTime = hadoop.StartTime  // a program of Hadoop's begins to serve
	waitTime = 50 * time.Second  // one condition; less than what is asked for anew by its age
)

// A place is where a daemon of the cluster serves a mount.
type place struct {
	*daemon.Place
	t testing.TB
	c *cluster.Cluster
}

func newPlace(t testing.TB, c *cluster.Cluster, host string, options ...string) *place {
	t.Helper()
	options = append([]string{"--ram", "64MiB", "--hadoop-conf", c.Conf()}, options...)
	return &place{daemon.New(t, rankfs, c.Host(host), options...), t, c}
}

// start mounts, and unmounts when the test ends.
func (p *place) start() *place {
	p.t.Helper()
	p.Start()
	return p
}

// create registers a path of the cluster, and returns what is said of that.
func (p *place) create(name, path string, options ...string) string {
	p.t.Helper()
	return p.Do(append([]string{"dataset", "create", name, "--source", "hdfs://" + p.c.Nameservice() + path}, options...)...)
}

// keepOnDisk has what leaves memory kept on disk, also while the planner finds
// that the source is as good.
func (p *place) keepOnDisk(view string) {
	p.t.Helper()
	p.Do("cache", "pin", view, "--tier", "nvme")
}

// read is what all batches of a view have, one after another.
func (p *place) read(view string) (string, error) {
	return p.Tool("sh", "-c", `for r in "$0"/rank-*; do cat "$r"/batch-*[0-9] || exit; done`, p.Mount()+"/datasets/"+view)
}

// batch is what cat makes of a batch.
func (p *place) batch(view string, n int) (string, error) {
	return p.Tool("cat", p.path(view, n))
}

func (p *place) path(view string, n int) string {
	return fmt.Sprintf("%s/datasets/%s/rank-0/batch-%06d", p.Mount(), view, n)
}

// A status is what these tests want to know of one.
type status struct {
	Counters struct {
		Fills      uint64
		OpenErrors uint64 `json:"open_errors"`
	}
	Warnings []string
	Tiers    []struct {
		Name, State string
		Slabs       int
	}
	HDFS struct {
		Bytes, Local, Corrupt, Failures uint64
		Streams                         int
		LocalBlocks                     string `json:"local_blocks"`
		ways[uint64]
	}
}

func (p *place) status() (s status) {
	p.t.Helper()
	p.Status(&s)
	return s
}
