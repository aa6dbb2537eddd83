package hdfs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A file whose blocks are read by file becomes another, or goes: the files of its former
// blocks are given up, though no process reads, no byte is of another version, and after a
// refresh the new blocks are read by file.
func TestLocalFilesChange(t *testing.T) {
	c := cluster.Mounts(t)
	dir := c.Dir(t)
	old := lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	client, err := c.Host("data1").HDFS("root")
	check(t, err)
	defer client.Close()
	for _, row := range []struct {
		name   string
		change func(file string) error
		now    string // what the file holds then; empty: there is none
		last   bool   // of its blocks only the last is another then
	}{
		{"appended", func(file string) error { return appendTo(client, file, "more\n") }, old + "more\n", true},
		{"replaced", func(file string) error {
			if err := client.Remove(file); err != nil {
				return err
			}
			c.Host("data1").Put(t, file, []byte(strings.ToUpper(old)), 2, block)
			return nil
		}, strings.ToUpper(old), false},
		{"deleted", func(file string) error { return client.Remove(file) }, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file := dir + "/" + row.name
			c.Host("data1").Put(t, file, []byte(old), 2, block)
			d.create(row.name, file)
			d.readsByFile(row.name, old)
			blocks, err := c.Blocks(t.Context(), file)
			check(t, err)
			stay := make(map[string]int)
			for i, b := range blocks {
				if row.last && i < len(blocks)-1 {
					stay[fmt.Sprintf("blk_%d", b.ID)] = 2
				}
			}
			if n := d.openBlocks(); len(n) != len(blocks) {
				t.Fatalf("of %d blocks are open: %v", len(blocks), n)
			}
			check(t, row.change(file))
			eventually.Within(t, waitTime, "files of blocks that are gone are given up, and no others", func() bool {
				return maps.Equal(d.openBlocks(), stay)
			})
			eventually.Within(t, waitTime, "what was indexed is gone", func() bool {
				d.Do("cache", "evict", row.name)
				got, err := d.read(row.name)
				if err == nil && got != old {
					t.Fatal("bytes of another version")
				}
				return err != nil && (strings.Contains(err.Error(), "Stale file handle") || row.now == "" && strings.Contains(err.Error(), "No such file"))
			})
			if row.now != "" {
				d.Do("dataset", "refresh", row.name)
				d.readsByFile(row.name, row.now)
			}
		})
	}
}

// openBlocks counts the files of each block that the daemon has open, whatever became of
// their names.
func (d *place) openBlocks() map[string]int {
	d.t.Helper()
	open := make(map[string]int)
	for _, block := range d.openFiles() {
		open[block]++
	}
	return open
}

// openFiles are the daemon's descriptors of such files, each with its block.
func (d *place) openFiles() map[int]string {
	d.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", d.PID())
	all, err := os.ReadDir(dir)
	check(d.t, err)
	open := make(map[int]string)
	for _, e := range all {
		of, err := os.Readlink(filepath.Join(dir, e.Name()))
		if name := blockName.FindString(of); err == nil && name != "" {
			fd, err := strconv.Atoi(e.Name())
			check(d.t, err)
			open[fd] = name
		}
	}
	return open
}

var blockName = regexp.MustCompile(`blk_[0-9]+`)

// readsByFile reads all of a view anew, all of it by file.
func (d *place) readsByFile(view, want string) {
	d.t.Helper()
	d.Do("cache", "evict", view)
	before := d.status().HDFS
	if got, err := d.read(view); err != nil || got != want {
		d.t.Fatalf("other bytes, or %v", err)
	}
	after := d.status().HDFS
	if n := after.Bytes - before.Bytes; n < uint64(len(want)) || after.Files-before.Files != n {
		d.t.Errorf("of %d bytes %d were read by file: %s", n, after.Files-before.Files, after.LocalBlocks)
	}
}

// appendTo appends to a file in HDFS.
func appendTo(client *hdfs.Client, file, text string) error {
	w, err := client.Append(file)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	for range 50 {
		if err = w.Close(); !errors.Is(err, hdfs.ErrReplicating) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
