package system_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"rankfs/test/eventually"
	"rankfs/test/readme"
)

// Ranks exchange data by the pool as by MPI: each word is where it belongs, and the sum of
// all is the same.
func TestMPIExchange(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	for _, size := range []string{"0", "1000", "4194304"} {
		var sums []string
		for _, how := range [][]string{{"pool", filepath.Dir(stage) + "/of-" + size}, {"mpi"}} {
			out := mpirun(t, 4, append([]string{"exchange", "-v", "-s", size}, how...)...)
			if !strings.HasPrefix(out, "exchange OK mode="+how[0]+" ranks=4 ") {
				t.Fatalf("%s bytes: %s", size, out)
			}
			sums = append(sums, cut(t, out, " sum="))
		}
		if sums[0] != sums[1] {
			t.Errorf("%s bytes: sums by the pool and by MPI: %q", size, sums)
		}
	}
}

// A sort of ranks over the pool has each number once, although each task runs twice, at
// the same time.
func TestMPISampleSort(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	sums := make(map[string]bool)
	for i, twice := range []string{"", "-t"} {
		job := fmt.Sprint(filepath.Dir(filepath.Dir(stage)), "/sort", i)
		out := sh(t, `mkdir "$2"; "$1/run" 4 "$1/bin/sample_sort" -n 20000 $3 "$2"`, programs, job, twice)
		if !strings.HasPrefix(out, "sample_sort OK ranks=4 numbers=80000 ") {
			t.Errorf("sample_sort %s: %s", twice, out)
		}
		sums[cut(t, out, " sum=")] = true
	}
	if len(sums) != 1 {
		t.Errorf("tasks that run twice have other numbers: sums %v", sums)
	}
}

const poolDoc = "docs/shuffle-pool.md"

// poolReader is a reader of the document of the pool, as a user on a machine where root
// has mounted.
func poolReader(t *testing.T) reader {
	t.Helper()
	r := newReader(t)
	r.types("sudo mkdir -p /mnt/rankfs")
	r.types("sudo rankfs mount /mnt/rankfs --background --pool-ram 64MiB")
	t.Cleanup(func() {
		if left := tryCommand("sh", "-c", `rm -rf "$0"/shuffle/*`, r.mount); left.code != 0 {
			t.Errorf("remove what is in the pool: %v", left)
		}
		eventually.Within(t, waitTime, "no file system of a job is left", func() bool { return len(mountsBelow(r.state)) == 0 })
	})
	return r
}

// The recipe for records counts the words of four texts, each in one part.
func TestPoolRecipeForRecords(t *testing.T) {
	t.Parallel()
	r := poolReader(t)
	r.types("for i in 0 1 2; do echo one two three two > text-$i; done; echo two zebra > text-3")
	got := strings.Fields(r.types(readme.BlockOf(t, poolDoc, "## Records that the pool divides, sorts and combines")))
	counts := make(map[string]string)
	for i := 0; i+1 < len(got); i += 2 {
		counts[got[i]] = got[i+1]
	}
	if want := map[string]string{"one": "3", "two": "7", "three": "3", "zebra": "1"}; len(got) != 8 || !maps.Equal(counts, want) {
		t.Errorf("it counts %q, want %v", got, want)
	}
}

// A record that cannot be is EBADMSG from rename(2), and state says which it is; a sum to
// which all maps come is EOVERFLOW from the open of the part, and state says by which record.
func TestRecordsThatAreRefused(t *testing.T) {
	_, stage := pool(t, "maps=1 record=line key=1 combine=sum")
	sh(t, `printf 'a\t1\nb\tmany\n' > "$1/.map-000000.7"`, stage)
	r := command(t, "mv", "-f", stage+"/.map-000000.7", stage+"/map-000000")
	state := sh(t, `cat "$1/state"`, stage)
	if r.code == 0 || !strings.Contains(r.err, "Bad message") || !strings.Contains(state, `.map-000000.7`) || !strings.Contains(state, `record 1, at byte 4: field 2 is "many"`) {
		t.Errorf("%v, and state: %s", r, state)
	}
	stage = strings.Replace(stage, "/stage", "/sums", 1)
	sh(t, `mkdir "$1"; echo 'maps=2 copies=1 record=line key=1 combine=sum' > "$1/spec"
printf 'b\t9223372036854775807\n' > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"
printf 'b\t1\na\t1\n' > "$1/.map-000001.0"; mv "$1/.map-000001.0" "$1/map-000001"`, stage)
	r = command(t, "cat", stage+"/part-000000")
	state = sh(t, `cat "$1/state"`, stage)
	if r.code == 0 || !strings.Contains(r.err, "Value too large") || !strings.Contains(state, `record 1 of what map 1 has of the part: the sum for key "b" is beyond`) {
		t.Errorf("%v, and state: %s", r, state)
	}
}

// The recipe for shells, as it stands in the document, counts the words of two texts.
func TestPoolRecipeForShells(t *testing.T) {
	t.Parallel()
	r := poolReader(t)
	r.types("echo one two three two > text-0; echo six four three two eleven > text-1")
	got := strings.Fields(r.types(readme.BlockOf(t, poolDoc, "# The shuffle pool")))
	if want := "1 eleven 1 one 1 six 3 two 1 four 2 three"; strings.Join(got, " ") != want {
		t.Errorf("it counts %q, want %q", got, want)
	}
}

// The program in C, as it stands in the document, compiles with the header that make
// install has, and divides lines.
func TestPoolRecipeForC(t *testing.T) {
	t.Parallel()
	r := poolReader(t)
	must(t, os.WriteFile(filepath.Join(r.home, "divide.c"), []byte(readme.BlockOf(t, poolDoc, "## In C")), 0o644))
	header, err := os.ReadFile("../../include/rankfs.h")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(r.home, "rankfs.h"), header, 0o644))
	got := r.types(`cc -std=gnu11 -O2 -Wall -Werror -I. -o divide divide.c
S=/mnt/rankfs/shuffle/lines/stage; mkdir -p $S; echo 'maps=2 parts=3' > $S/spec
printf 'a\nbb\nccc\n' | ./divide $S 0 0
printf 'dddd\neeee\n' | ./divide $S 1 4
printf 'zzzz\n' | ./divide $S 1 5
for part in 0 1 2; do ./divide $S $part; cat $S/part-00000$part; done`)
	want := "map 0: 3 bytes\nmap 1: 0 bytes\nbb\nmap 0: 4 bytes\nmap 1: 0 bytes\nccc\nmap 0: 2 bytes\nmap 1: 10 bytes\na\ndddd\neeee\n"
	if got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}

// A part that is mapped by rankfs.h has no table of another run, if the stage is reset
// and written anew between the two.
func TestHeaderMixesNoRuns(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=1 parts=1")
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/anew", []byte(`#!/bin/sh -e
printf "$2" > "$1/.map-000000.0"
mv -T "$1/.map-000000.0" "$1/map-000000"
`), 0o755))
	must(t, os.WriteFile(dir+"/part.c", []byte(`
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char *between;

static int opens(const char *path, int flags)
{
	if (between && strstr(path, ".idx") && system(between))
		errx(1, "%s", between);
	return open(path, flags);
}
#define open(path, flags) opens(path, flags)
#include <rankfs.h>

int main(int argc, char **argv)
{
	struct rankfs_batch b;

	between = argc > 2 ? argv[2] : NULL;
	if (rankfs_part(&b, argv[1], 0)) {
		printf("%s\n", strerror(errno));
		return 0;
	}
	printf("%.*s, of %zu maps\n", (int)b.size, (const char *)b.data, b.records);
	rankfs_unmap(&b);
	return 0;
}
`), 0o644))
	out, err := exec.Command("cc", "-std=gnu11", "-Wall", "-Wextra", "-I../../include", "-o", dir+"/part", dir+"/part.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := sh(t, `"$2/anew" "$1" one
"$2/part" "$1"
"$2/part" "$1" "'$3' --run '$4' shuffle reset job/stage > '$2/said' && '$2/anew' '$1' two"
"$2/part" "$1"`, stage, dir, rankfs, n.run)
	if want := "one, of 1 maps\nStale file handle\ntwo, of 1 maps\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The lines of Python, as they stand in the document, by four ranks at once.
func TestPoolRecipeForPython(t *testing.T) {
	t.Parallel()
	r := poolReader(t)
	text := strings.ReplaceAll(readme.BlockOf(t, poolDoc, "## In Python"), "/mnt/rankfs", r.mount)
	must(t, os.WriteFile(filepath.Join(r.home, "rank.py"), []byte(text), 0o644))
	r.types("S=/mnt/rankfs/shuffle/numbers/stage; mkdir -p $S; echo 'maps=4 parts=4' > $S/spec")
	numbers := 0
	for _, out := range r.together(4, "RANK=%d /usr/bin/python3 rank.py") {
		n, err := strconv.Atoi(regexp.MustCompile(`^\d+`).FindString(out))
		if err != nil {
			t.Errorf("a rank prints %q", out)
		}
		numbers += n
	}
	if numbers != 400_000 {
		t.Errorf("the ranks have %d numbers, want 400000", numbers)
	}
}

// The header is C of 1999 and C++ without a warning, as the one for DL-MPI.
func TestHeaderIsStrict(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "include.c")
	must(t, os.WriteFile(file, []byte("#include \"rankfs.h\"\nint main(void) { return 0; }\n"), 0o644))
	for _, compiler := range [][]string{{"gcc", "-std=c99", "-D_XOPEN_SOURCE=700"}, {"g++", "-x", "c++"}} {
		args := append(compiler[1:], "-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror", "-O2", "-I../../include", "-c", "-o", os.DevNull, file)
		if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", compiler[0], err, out)
		}
	}
}

// together types a line for each of some ranks, at the same time, and returns what each
// prints.
func (r reader) together(ranks int, line string) []string {
	r.person.t.Helper()
	results, out := make([]result, ranks), make([]string, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() { results[rank] = r.does("sh", "-euc", fmt.Sprintf(line, rank)) })
	}
	all.Wait()
	for rank, got := range results {
		if got.code != 0 {
			r.person.t.Errorf("rank %d: %v", rank, got)
		}
		out[rank] = got.out
	}
	return out
}
