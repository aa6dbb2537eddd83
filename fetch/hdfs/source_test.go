package hdfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	library "github.com/colinmarc/hdfs/v2"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/test/cluster"
	"rankfs/test/sourcetest"
)

// clusters reaches the cluster of the tests.
func clusters(t testing.TB, c *cluster.Cluster, change func(*hdfs.Config)) *hdfs.Clusters {
	t.Helper()
	config := hdfs.Config{Conf: c.Conf(), User: "root", Scratch: t.TempDir(), Timeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&config)
	}
	k, err := hdfs.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func dial(t testing.TB, h *cluster.Host) *library.Client {
	t.Helper()
	client, err := h.HDFS("root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// text is n lines, some of them empty, some with CRLF, some longer than a
// block of 64 KiB, the last without an end.
func text(n int) (content []byte, records [][]byte) {
	r := rand.New(rand.NewPCG(7, 0))
	for i := range n {
		var line []byte
		switch i % 50 {
		case 3:
		case 17:
			line = bytes.Repeat([]byte{'x'}, r.IntN(200_000))
		default:
			line = fmt.Appendf(nil, "line %d %s", i, strings.Repeat("ab", r.IntN(300)))
		}
		if i%7 == 0 {
			line = append(line, '\r')
		}
		if i < n-1 {
			line = append(line, '\n')
		}
		records = append(records, line)
		content = append(content, line...)
	}
	return content, records
}

const block = 64 << 10

// Every form is a source like any other.
func TestConformance(t *testing.T) {
	c := cluster.Shared(t)
	content, records := text(400)
	values := manyValues()
	for _, test := range []conformance{
		{"lines", "f?as=lines", block, map[string][]byte{"f": content}, records},
		{"lines of a directory", "d?as=lines", block, map[string][]byte{"d/a": content, "d/b": content[:100_000], "d/_SUCCESS": nil},
			append(append([][]byte{}, records...), cutLines(content[:100_000])...)},
		{"lines of empty files", "d?as=lines", block, map[string][]byte{"d/a": nil, "d/b": nil}, nil},
		{"fixed", "f?as=fixed:1000", block, map[string][]byte{"f": content}, cutFixed(content, 1000)},
		{"files", "d", block, map[string][]byte{"d/a": content[:10], "d/b/c": content[:block], "d/b/d": nil, "d/e": content[:block+1]},
			[][]byte{content[:10], content[:block], nil, content[:block+1]}},
		{"pattern", "part-{0,1}?as=fixed:7", block, map[string][]byte{"part-0": content[:70], "part-1": content[70:80], "part-2": content[:9]},
			append(cutFixed(content[:70], 7), content[70:77])},
		{"chunks of lines", "f?as=chunks", block, map[string][]byte{"f": content}, cutChunks(records)},
		oddNames(),
		{"values", "d?as=sequence", block, map[string][]byte{"d/a": sequenceOf(values[:300], false), "d/b": sequenceOf(values[300:], true)}, values},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// A conformance is files in HDFS that are a source.
type conformance struct {
	name    string
	options string
	block   int64
	files   map[string][]byte
	records [][]byte
}

// oddNames are files of a directory as some sites call them. A namenode lists what is not
// ASCII before what is.
func oddNames() conformance {
	f := conformance{"files of odd names", "d", block, make(map[string][]byte), nil}
	for _, name := range []string{" a", "%20", "a b", "a#b", "a&b=c+d", "a?as=lines", "a\\b", "a[1]", "a{b,c}*", "a\tb", "a\nb", "a'\"",
		"a\u0080", "ab", "aé", "aéb", "az", "a\U0001f600", "b ", "z;@~", "ä", "日本", "日本a", "日本ü", "日本語"} {
		f.files["d/"+name] = []byte(name)
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		f.records = append(f.records, f.files[name])
	}
	return f
}

// put writes the files.
func (f conformance) put(t *testing.T, c *cluster.Cluster, dir string) {
	for name, content := range f.files {
		c.Host("data1").Put(t, dir+"/"+name, content, 2, f.block)
	}
}

// run holds the source to what all sources promise.
func (f conformance) run(t *testing.T, c *cluster.Cluster) {
	common := c.Dir(t)
	f.put(t, c, common)
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		dir := common
		if strings.Contains(t.Name(), "notices") { // a change spoils it for the others
			dir = c.Dir(t)
			f.put(t, c, dir)
		}
		env := &fetch.Env{HDFS: clusters(t, c, nil)}
		return sourcetest.Fixture{
			Open:    func() (fetch.Source, error) { return fetch.Open("hdfs://rankfs"+dir+"/"+f.options, env) },
			Records: f.records,
			Changes: f.changes(t, c, dir),
		}
	})
}

// changes are those that the first file can suffer.
func (f conformance) changes(t *testing.T, c *cluster.Cluster, dir string) []sourcetest.Change {
	name := ""
	for one := range f.files {
		if !strings.Contains(one, "_") && (name == "" || one < name) {
			name = one
		}
	}
	first := dir + "/" + name
	client := dial(t, c.Host("data1"))
	// Files are watched alike in all forms; it takes seconds.
	watched := strings.HasPrefix(f.name, "lines")
	return []sourcetest.Change{
		{Name: "a file that is gone", Unseen: !watched, Late: watched, Do: func() error { return client.Remove(first) }},
		{Name: "a file that was renamed", Unseen: !watched, Late: watched, Do: func() error { return client.Rename(first, dir+"/_other") }},
		{Name: "a file that is written anew", Unseen: !watched, Late: watched, Do: func() error {
			err := client.Remove(first)
			c.Host("data1").Put(t, first, f.files[name], 2, f.block)
			return err
		}},
		{Name: "a file that is appended to", Unseen: !watched, Late: watched, Do: func() error {
			w, err := client.Append(first)
			if err != nil {
				return err
			}
			_, err = w.Write([]byte("more\n"))
			return errors.Join(err, cluster.Finish(w))
		}},
	}
}

func cutLines(content []byte) (records [][]byte) {
	for line := range bytes.Lines(content) {
		records = append(records, line)
	}
	return records
}

// cutChunks puts lines together that begin in one block.
func cutChunks(lines [][]byte) (chunks [][]byte) {
	at, last := 0, -1
	for _, line := range lines {
		if at/block != last {
			chunks, last = append(chunks, nil), at/block
		}
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], line...)
		at += len(line)
	}
	return chunks
}

func cutFixed(content []byte, n int) (records [][]byte) {
	for ; len(content) >= n; content = content[n:] {
		records = append(records, content[:n])
	}
	return records
}

// Every chunk names the hosts of its block, in every form.
func TestHosts(t *testing.T) {
	c := cluster.Shared(t)
	content, _ := text(400)
	dir := c.Dir(t)
	c.Host("data1").Put(t, dir+"/f", content, 2, block)
	for _, as := range []string{"lines", "chunks", "fixed:1000", "files"} {
		d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
			return fetch.Open("hdfs://rankfs"+dir+"/f?as="+as, &fetch.Env{HDFS: clusters(t, c, nil)})
		}})
		if d.Chunks() == 0 {
			t.Errorf("%s: no chunks", as)
		}
		for i := range d.Chunks() {
			hosts := d.Chunk(i).Hosts
			if len(hosts) < 2 || as != "files" && !slices.Contains(hosts, "data1") {
				t.Errorf("%s: chunk %d is on %q, want data1, where it was written, and another", as, i, hosts)
			}
		}
	}
}
