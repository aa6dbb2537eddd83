package hdfs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Ranks read blocks of their host by file while the blocks change: no byte is
// wrong, and no read fails, since other hosts have the blocks.
func TestLocalBlocksChange(t *testing.T) {
	c := cluster.MountsAlone(t)
	dir := c.Dir(t)
	content := lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	changes := []struct {
		name   string
		gone   bool // the namenode no longer names the host for the block
		change func(j *job, block uint64) error
	}{
		{"bytes corrupted", true, func(j *job, block uint64) error { return j.Host.CorruptReplicaAt(block, 700) }},
		{"other bytes in its place", true, func(j *job, block uint64) error {
			name, err := replica(j.Host, block)
			return errors.Join(err, os.WriteFile(name+".next", make([]byte, 64<<10), 0o644), os.Rename(name+".next", name))
		}},
		{"sums corrupted", true, func(j *job, block uint64) error { return overwriteSums(j.Host, block) }},
		{"sums deleted", true, func(j *job, block uint64) error {
			name, err := j.Host.Sums(block)
			return errors.Join(err, os.Remove(name))
		}},
		{"replica deleted", false, func(j *job, block uint64) error { return j.Host.DeleteReplica(block) }},
		{"replica is no file", false, func(j *job, block uint64) error {
			name, err := replica(j.Host, block)
			return errors.Join(err, os.Remove(name), os.Mkdir(name, 0o755))
		}},
		{"moved by the balancer", true, (*job).move},
	}
	for i, row := range changes {
		t.Run(row.name, func(t *testing.T) {
			j := p.job(t, fmt.Sprintf("%s/change%d", dir, i), content, twice)
			blocks := j.blocks()
			if len(blocks) < 2 {
				t.Fatalf("the host has %d blocks", len(blocks))
			}
			check(t, row.change(j, blocks[1]))
			j.goOn(row.name)
			if row.gone {
				eventually.Within(t, toolTime, "the namenode knows", func() bool { return t.Failed() || j.withdrawn(blocks[1]) })
			}
			j.goOn(row.name + ", a while ago")
			j.end()
		})
	}
}

// A file is appended to while ranks read it: what they read is whole, as it was before or
// after, or they are told that it is stale. After a refresh all of it is read by file, and
// no file of its former last block is open.
func TestLocalFileGrows(t *testing.T) {
	c := cluster.Mounts(t)
	d := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile()).start()
	j := &job{place: d, view: "grows", file: c.Dir(t) + "/grows", rounds: make([]atomic.Int64, jobRanks)}
	const times = 3
	versions := []string{lines(5000)}
	for range times {
		versions = append(versions, versions[len(versions)-1]+"more\n")
	}
	d.Host.Put(t, j.file, []byte(versions[0]), twice, block)
	d.create(j.view, j.file)
	d.readsByFile(j.view, versions[0])
	client, err := d.Host.HDFS("root")
	check(t, err)
	defer client.Close()

	var stale atomic.Int64
	j.open = j.Descriptors()
	for i := range j.rounds {
		j.work.Go(func() {
			for !j.stop.Load() && !t.Failed() {
				_, err := d.Rankfs("cache", "evict", j.view)
				got := ""
				if err == nil {
					got, err = d.read(j.view)
				}
				switch {
				case err == nil && slices.Contains(versions, got):
					j.rounds[i].Add(1)
				case err == nil:
					t.Errorf("a rank has read %d other bytes", len(got))
				case strings.Contains(err.Error(), "Stale file handle"):
					stale.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	t.Cleanup(j.end)
	for n := range times {
		j.byFile("in peace")
		before := stale.Load()
		check(t, appendTo(client, j.file, "more\n"))
		eventually.Within(t, waitTime, "ranks know that it is stale", func() bool { return stale.Load() > before || t.Failed() })
		j.Do("dataset", "refresh", j.view)
		j.byFile("appended to")
		if got, err := d.read(j.view); err != nil || got != versions[n+1] {
			t.Errorf("after a refresh: other bytes, or %v", err)
		}
		want := make(map[string]int)
		for _, id := range j.blocks() {
			want[fmt.Sprintf("blk_%d", id)] = 2
		}
		eventually.Within(t, waitTime, "files of the former block are given up, and no others", func() bool { return maps.Equal(j.openBlocks(), want) })
	}
	j.end()
}

// replica is the file of a block's bytes on a host.
func replica(h *cluster.Host, block uint64) (string, error) {
	sums, err := h.Sums(block)
	if err != nil {
		return "", err
	}
	return sums[:strings.LastIndex(sums, "_")], nil
}

// overwriteSums makes the second checksum of a block another.
func overwriteSums(h *cluster.Host, block uint64) error {
	name, err := h.Sums(block)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{1, 2, 3, 4}, 7+4)
	return err
}
