package hdfs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
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
	const view = "grows"
	file := c.Dir(t) + "/" + view
	const times = 3
	versions := []string{lines(5000)}
	for range times {
		versions = append(versions, versions[len(versions)-1]+"more\n")
	}
	d.Host.Put(t, file, []byte(versions[0]), twice, block)
	d.create(view, file)
	d.readsByFile(view, versions[0])
	client, err := d.Host.HDFS("root")
	check(t, err)
	defer client.Close()

	j := d.follow(view, file, versions...)
	for n := range times {
		j.byFile("in peace")
		before := j.told.Load()
		check(t, appendTo(client, file, "more\n"))
		j.areTold(before)
		j.Do("dataset", "refresh", view)
		j.byFile("appended to")
		if got, err := d.read(view); err != nil || got != versions[n+1] {
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

// A file is replaced, or removed, while ranks read it: what they read is whole, of one of
// its versions, or they are told that it is stale, and the files of its former blocks are
// given up. After a refresh the new blocks are read by file.
func TestLocalFileGoes(t *testing.T) {
	c := cluster.Mounts(t)
	dir, old := c.Dir(t), lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	client, err := c.Host("data1").HDFS("root")
	check(t, err)
	defer client.Close()
	for view, now := range map[string][]string{"replaced": {strings.ToUpper(old)}, "removed": nil} {
		t.Run(view, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file := dir + "/" + view
			d.Host.Put(t, file, []byte(old), twice, block)
			d.create(view, file)
			d.readsByFile(view, old)
			former := d.openBlocks()
			j := d.follow(view, file, append(now, old)...)
			j.byFile("in peace")
			before := j.told.Load()
			check(t, client.Remove(file))
			for _, text := range now {
				d.Host.Put(t, file, []byte(text), twice, block)
			}
			j.areTold(before)
			eventually.Within(t, waitTime, "files of its former blocks are given up", func() bool {
				open := d.openBlocks()
				maps.DeleteFunc(open, func(block string, _ int) bool { return former[block] == 0 })
				return len(open) == 0
			})
			for _, text := range now {
				d.Do("dataset", "refresh", view)
				j.byFile("after a refresh")
				if got, err := d.read(view); err != nil || got != text {
					t.Errorf("after a refresh: other bytes, or %v", err)
				}
			}
			j.end()
		})
	}
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
