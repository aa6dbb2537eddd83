package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A tera has Hadoop's examples for sorts: GenSort, which makes records of 100 bytes that begin
// with a key of 10, TeraSort, and TeraValidate, which each side has to satisfy in each turn.
type tera struct {
	b    *bench
	home string // has the jars
	in   string // has 2 GiB of records, for each task a part
	sum  string // of them all, in whichever order
}

// records is how GenSort's are sorted by the pool.
const records = "record=fixed:100 key=1-10 by=range"

func (b *bench) tera() *tera {
	t := &tera{b: b, home: filepath.Join(b.root, "build/tera"), in: filepath.Join(b.dir, "records")}
	output(filepath.Join(b.root, "test/bench/tera/prepare"), t.home)
	if _, err := os.Stat(t.in); err != nil {
		check(os.Mkdir(t.in, 0o700))
		each := 2 << 30 / *small / 100 / recordMaps
		b.parallel(numbers(recordMaps), `java -cp "$1/lib/*" org.apache.hadoop.examples.terasort.GenSort -b"$(expr $0 \* $2)" "$2" "$3/$0"`,
			t.home, strconv.Itoa(each), t.in)
		unix.Sync()
	}
	read(glob(t.in + "/*")...)
	t.sum = t.result("TeraChecksum", t.in)
	return t
}

// sort has TeraSort write the records, sorted, and returns how long it took. What it spills, and
// what it writes, is in memory, which is as much in all as the pool's daemon has.
func (t *tera) sort() float64 {
	dir := t.scratch()
	defer os.RemoveAll(dir)
	out := t.run(dir, "TeraSort", fmt.Sprint("-Dmapreduce.job.reduces=", recordParts),
		"-Dmapreduce.input.fileinputformat.split.minsize=1073741824", // a map for each file
		"-Dmapreduce.task.io.sort.mb=256",                            // which it spills once
		"-Dmapreduce.reduce.input.buffer.percent=0.7",
		"-Dio.file.buffer.size=131072",
		t.in, dir+"/out")
	t.validate(glob(dir + "/out/part-r-*")...)
	return value(out, "seconds")
}

// validate has TeraValidate look through files that are one sorted order, each after the other by
// their names, and finds in them all of the records.
func (t *tera) validate(parts ...string) {
	dir := t.scratch()
	defer os.RemoveAll(dir)
	for _, part := range parts {
		check(os.Symlink(part, filepath.Join(dir, filepath.Base(part))))
	}
	if sum := t.result("TeraValidate", dir); sum != "checksum\t"+t.sum {
		check(fmt.Errorf("TeraValidate says of %d parts: %q; the checksum of the records is %s", len(parts), sum, t.sum))
	}
}

// result is what one of the programs writes of what is in a directory.
func (t *tera) result(program, in string) string {
	dir := t.scratch()
	defer os.RemoveAll(dir)
	t.run(dir, program, in, dir+"/out")
	text, err := os.ReadFile(dir + "/out/part-r-00000")
	check(err)
	return strings.TrimSpace(string(text))
}

// run runs one of the programs with as many tasks at a time as there are cores.
func (t *tera) run(dir, program string, args ...string) string {
	tasks := fmt.Sprint(cores())
	cmd := exec.Command("java", append([]string{
		"@" + filepath.Join(t.b.root, "test/hadoop/options"), "-Xmx3g", "-XX:+UseParallelGC",
		"-Djava.library.path=" + filepath.Join(t.home, "native/nativelib/Linux-"+runtime.GOARCH),
		"-cp", strings.Join([]string{t.home + "/classes", t.home + "/lib/*", filepath.Join(t.b.root, "test/hadoop")}, ":"),
		"-Dhadoop.root.logger=WARN,console", "Timed", "org.apache.hadoop.examples.terasort." + program,
		"-Dhadoop.tmp.dir=" + dir, "-Dmapreduce.client.progressmonitor.pollinterval=100", // ms; it is what ends a wait
		"-Dmapreduce.local.map.tasks.maximum=" + tasks, "-Dmapreduce.local.reduce.tasks.maximum=" + tasks,
	}, args...)...)
	cmd.Dir = dir // where it links to the boundaries of parts
	return printed(cmd)
}

// scratch is an empty directory in memory.
func (t *tera) scratch() string {
	dir, err := os.MkdirTemp(t.b.shm, "tera-")
	check(err)
	return dir
}

// poolTera compares a sort by the pool with TeraSort.
func poolTera(b *bench) (ours, theirs func() float64) {
	t := b.tera()
	return t.byPool().turn, t.sort
}

func (t *tera) byPool() *recordJob {
	return &recordJob{pooled: t.b.pool(), in: t.in, task: "cat", spec: records, pieces: numbers(recordParts), check: t.validate}
}
