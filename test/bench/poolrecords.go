package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What rows of records have alike: so many map tasks, each of a file of its own, and so many
// parts.
const (
	recordMaps  = 16
	recordParts = 8
)

// A recordJob is map tasks and reducers, of which as many run at a time as there are cores.
type recordJob struct {
	*pooled
	in     string   // has the file of each task, by its number
	task   string   // in shell, what makes a map of a file
	spec   string   // of the stage, beside its maps, parts and copies
	pieces []string // what reducers read, by their names without part-
	merged string   // in shell, what puts pieces together as the peer's bytes are
	want   string   // a file of these
	check  func(pieces ...string)
}

// sorting is a job that sorts the lines of files by all their bytes.
func (b *bench) sorting(in string) *recordJob {
	return &recordJob{pooled: b.pool(), in: in, task: "cat", spec: "record=line by=range", pieces: numbers(recordParts), merged: "cat"}
}

// numbers are the first n, as maps and parts have them in their names.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%06d", i))
	}
	return all
}

// against compares it with a script that has the directory of files as $0, and as $1 an empty
// one. What the script prints are the bytes that ours must be.
func (j *recordJob) against(script string) (ours, theirs func() float64) {
	j.expect(script)
	return j.turn, func() float64 { return seconds(func() { j.peer(script, "/dev/null") }) }
}

func (j *recordJob) peer(script, to string) {
	scratch := filepath.Join(j.b.dir, "peer")
	check(os.Mkdir(scratch, 0o700))
	defer os.RemoveAll(scratch)
	j.b.script("{ "+script+`; } >"$2"`, j.in, scratch, to)
}

// expect has a script print the bytes of all pieces.
func (j *recordJob) expect(script string) {
	j.want, j.check = j.in+".want", j.compare
	if _, err := os.Stat(j.want); err != nil {
		j.peer(script, j.want)
		unix.Sync() // what is still to be written would slow the first turns
	}
}

// turn is how long it takes from the first write to the last byte that a reducer reads.
func (j *recordJob) turn() float64 {
	dir, remove := j.stage(fmt.Sprintf("maps=%d parts=%d copies=1 %s", recordMaps, recordParts, j.spec))
	defer remove()
	took := seconds(func() {
		j.b.parallel(numbers(recordMaps), j.task+` <"$1/$0" >"$2/.map-$0.0"; mv -f "$2/.map-$0.0" "$2/map-$0"`, j.in, dir)
		j.b.parallel(j.pieces, `cat "$1/part-$0"`, dir)
	})
	j.check(prefixed(dir+"/part-", j.pieces)...)
	return took
}

// compare compares the bytes of all pieces with the peer's.
func (j *recordJob) compare(pieces ...string) {
	j.b.script(j.merged+` "$@" | cmp - "$0"`, append([]string{j.want}, pieces...)...)
}

func prefixed(by string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, by+name)
	}
	return all
}

// files makes so many bytes in all, for each task a part of it, and returns their directory.
func (g *ground) files(name, kind string, bytes, size int, args ...string) (dir string) {
	dir = filepath.Join(g.dir, name)
	check(os.MkdirAll(dir, 0o700))
	var all []string
	for i, number := range numbers(recordMaps) {
		of := []string{kind, "-n", strconv.Itoa(bytes / *small / size / recordMaps), "-size", strconv.Itoa(size), "-seed", strconv.Itoa(i + 1)}
		all = append(all, g.data(filepath.Join(name, number), slices.Concat(of, args)...))
	}
	read(all...)
	return dir
}

// sorts is what sort(1) is asked for: as many threads as there are cores, and as much memory as
// the daemon has.
var sorts = fmt.Sprintf("sort --parallel=%v -S %s", cores(), poolRAM)

// poolSort compares a sort by the pool with sort(1).
func poolSort(b *bench) (ours, theirs func() float64) {
	return b.sorting(b.files("keyed", "keyed", 2<<30, 100)).against(sorts + ` "$0"/*`)
}

// poolSortMemory is the memory of the daemon that no file has, at most, while it sorts 2 GiB of
// lines: its heap, above all.
func poolSortMemory(b *bench) (most float64) {
	j := b.sorting(b.files("keyed", "keyed", 2<<30, 100))
	j.expect(sorts + ` "$0"/*`)
	pid, sorted := b.status().PID, make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-sorted:
				return
			case <-time.After(10 * time.Millisecond):
				most = max(most, ofProcess(pid, "RssAnon"))
			}
		}
	})
	j.turn()
	close(sorted)
	watch.Wait()
	return most
}

// poolMerge compares a sort of maps that are sorted with a merge of their files.
func poolMerge(b *bench) (ours, theirs func() float64) {
	in := b.files("keyed", "keyed", 2<<30, 100)
	sorted := filepath.Join(b.dir, "sorted")
	if _, err := os.Stat(sorted); err != nil {
		check(os.Mkdir(sorted, 0o700))
		b.parallel(numbers(recordMaps), `sort "$1/$0" >"$2/$0"`, in, sorted)
		unix.Sync()
	}
	return b.sorting(sorted).against(sorts + ` -m "$0"/*`)
}

// counting is a job that counts the words of 1 GiB of text. Each part is its words in their
// order, so that all parts are merged to be compared.
func (b *bench) counting() *recordJob {
	return &recordJob{
		pooled: b.pool(), in: b.files("text", "text", 1<<30, 80),
		task: `awk '{ for (i = 1; i <= NF; i++) print $i "\t1" }'`, spec: "record=line key=1 combine=sum",
		pieces: numbers(recordParts), merged: "sort -m",
	}
}

// poolWords compares it with the same of files: words are sorted and counted for each by as
// many tasks as there are cores, and the counts of all are merged.
func poolWords(b *bench) (ours, theirs func() float64) {
	return b.counting().against(fmt.Sprintf(`ls "$0" | xargs -P %v -I@ sh -c 'awk "{ for (i = 1; i <= NF; i++) print \$i }" "$0/@" | %s | uniq -c | awk "{ print \$2 \"\t\" \$1 }" >"$1/@"' "$0" "$1"
		sort -m "$1"/* | awk -F '\t' '$1 != word { if (NR > 1) print word "\t" n; word = $1; n = 0 } { n += $2 } END { print word "\t" n }' `, cores(), sorts))
}

// poolWordTable compares it with a table that one awk has of all words.
func poolWordTable(b *bench) (ours, theirs func() float64) {
	return b.counting().against(`cat "$0"/* | mawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (word in n) print word "\t" n[word] }' | sort`)
}

// poolSkew compares records of which 99 of 100 are in one part with such as are spread evenly,
// where reducers read each part by ranges of maps.
func poolSkew(b *bench) (ours, theirs func() float64) {
	p := b.pool()
	side := func(name string, args ...string) func() float64 {
		j := &recordJob{pooled: p, in: b.files(name, "keyed", 1<<30, 100, args...), task: "cat", spec: "record=line key=1 sort=key", merged: "sort -m"}
		for _, part := range numbers(recordParts) {
			for first := 0; first < recordMaps; first += 2 {
				j.pieces = append(j.pieces, fmt.Sprintf("%s@maps=%d-%d", part, first, first+1))
			}
		}
		j.expect(sorts + ` "$0"/*`)
		return j.turn
	}
	return side("skewed", "-skew", strconv.Itoa(recordParts)), side("even")
}
