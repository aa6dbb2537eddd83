package hdfs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A file whose blocks are read by file becomes another, or goes: no byte is of another
// version, the files of its former blocks are given up, and after a refresh the new
// ones are read by file.
func TestLocalFilesChange(t *testing.T) {
	c := cluster.Shared(t)
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
	}{
		{"appended", func(file string) error { return appendTo(client, file, "more\n") }, old + "more\n"},
		{"replaced", func(file string) error {
			if err := client.Remove(file); err != nil {
				return err
			}
			c.Host("data1").Put(t, file, []byte(strings.ToUpper(old)), 2, block)
			return nil
		}, strings.ToUpper(old)},
		{"deleted", func(file string) error { return client.Remove(file) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := (&place{p.For(t), t, c}).start()
			file := dir + "/" + row.name
			c.Host("data1").Put(t, file, []byte(old), 2, block)
			d.create(row.name, file)
			d.readsByFile(row.name, old)
			check(t, row.change(file))
			eventually.Within(t, waitTime, "what was indexed is gone", func() bool {
				d.Do("cache", "evict", row.name)
				got, err := d.read(row.name)
				if err == nil && got != old {
					t.Fatal("bytes of another version")
				}
				return err != nil && (strings.Contains(err.Error(), "Stale file handle") || row.now == "" && strings.Contains(err.Error(), "No such file"))
			})
			eventually.Within(t, waitTime, "files of blocks that are gone are given up", func() bool {
				_, err := d.Tool("sh", "-c", `! ls -l /proc/"$0"/fd | grep '/blk_.*(deleted)'`, fmt.Sprint(d.PID()))
				return err == nil
			})
			if row.now != "" {
				d.Do("dataset", "refresh", row.name)
				d.readsByFile(row.name, row.now)
			}
		})
	}
}

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
