package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// What rows of records have alike: so many map tasks, each of a file of its own, and so many
// parts.
const (
	recordMaps  = 16
	recordParts = 8
)

// A sortJob is map tasks and reducers, of which as many run at a time as there are cores.
type sortJob struct {
	*pooled
	in   string // has the file of each task, by its number
	want string // a file of the bytes that all parts are
}

// sorting is a job that sorts the lines of files by all their bytes.
func (b *bench) sorting(in string) *sortJob { return &sortJob{pooled: b.pool(), in: in} }

// numbers are the first n, as maps and parts have them in their names.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%06d", i))
	}
	return all
}

// against compares it with a script that has the directory of files as $0, and as $1 an empty
// one. What the script prints are the bytes that ours must be.
func (j *sortJob) against(script string) (ours, theirs func() float64) {
	j.expect(script)
	return j.turn, func() float64 { return seconds(func() { j.peer(script, "/dev/null") }) }
}

func (j *sortJob) peer(script, to string) {
	scratch := filepath.Join(j.b.dir, "peer")
	check(os.Mkdir(scratch, 0o700))
	defer os.RemoveAll(scratch)
	j.b.script("{ "+script+`; } >"$2"`, j.in, scratch, to)
}

// expect has a script print the bytes of all parts.
func (j *sortJob) expect(script string) {
	j.want = j.in + ".want"
	if _, err := os.Stat(j.want); err != nil {
		j.peer(script, j.want)
		unix.Sync() // what is still to be written would slow the first turns
	}
}

// turn is how long it takes from the first write to the last byte that a reducer reads.
func (j *sortJob) turn() float64 {
	dir, remove := j.stage(fmt.Sprintf("maps=%d parts=%d copies=1 record=line by=range", recordMaps, recordParts))
	defer remove()
	took := seconds(func() {
		j.b.parallel(numbers(recordMaps), `cat "$1/$0" >"$2/.map-$0.0"; mv -f "$2/.map-$0.0" "$2/map-$0"`, j.in, dir)
		j.b.parallel(numbers(recordParts), `cat "$1/part-$0"`, dir)
	})
	j.b.script(`cd "$0"; want=$1; shift; for i; do cat "part-$i"; done | cmp - "$want"`, append([]string{dir, j.want}, numbers(recordParts)...)...)
	return took
}

// keyed makes so many bytes of lines, for each task a file, and returns their directory.
func (b *bench) keyed(bytes int) (dir string) {
	const name, size = "keyed", 100
	dir = filepath.Join(b.dir, name)
	check(os.MkdirAll(dir, 0o700))
	var all []string
	for i, number := range numbers(recordMaps) {
		all = append(all, b.data(filepath.Join(name, number), "keyed", "-n", strconv.Itoa(bytes / *small / size / recordMaps), "-size", strconv.Itoa(size), "-seed", strconv.Itoa(i+1)))
	}
	read(all...)
	return dir
}

// sorts is what sort(1) is asked for: as many threads as there are cores, and as much memory as
// the daemon has.
var sorts = fmt.Sprintf("sort --parallel=%v -S %s", cores(), poolRAM)

// poolSort compares a sort by the pool with sort(1).
func poolSort(b *bench) (ours, theirs func() float64) {
	return b.sorting(b.keyed(2 << 30)).against(sorts + ` "$0"/*`)
}

// poolMerge compares a sort of maps that are sorted with a merge of their files.
func poolMerge(b *bench) (ours, theirs func() float64) {
	in := b.keyed(2 << 30)
	sorted := filepath.Join(b.dir, "sorted")
	if _, err := os.Stat(sorted); err != nil {
		check(os.Mkdir(sorted, 0o700))
		b.parallel(numbers(recordMaps), `sort "$1/$0" >"$2/$0"`, in, sorted)
		unix.Sync()
	}
	return b.sorting(sorted).against(sorts + ` -m "$0"/*`)
}
