package system_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A program that writes a spec that cannot be learns so from write(2), and why from the file state.
func TestSpecsThatAreRefused(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	for spec, why := range map[string]string{
		"compress=snappy":                         "write compress=none, compress=lz4 or compress=zstd",
		"place=anywhere":                          "write place=writer or place=ring",
		"weight=101":                              "write a number from 1 to 100",
		"maps=0":                                  "write a number from 1 to 262144",
		"maps":                                    "write KEY=VALUE",
		"maps=1 maps=2":                           "two values of maps",
		"record=fixed:0":                          "record=fixed:0 in spec is not valid: write record=fixed:BYTES, of 1 to 1073741824 bytes",
		"record=line key=1048577":                 "write the number of a field, 1048576 at most",
		"record=line key=1-1073741825":            "both ends included, as 1-10, and ends at 1073741824 at most",
		"sort=key":                                "sort= in spec is of no use without record=",
		"by=range":                                "by= in spec is of no use without record=",
		"record=line combine=sum":                 "it needs record=line key=1",
		"record=line sort=none by=range":          "by=range sort=none in spec",
		"record=line key=1-3 sep=,":               "sep= in spec is not valid: fields end there, and the key is none",
		"record=line sep=space sort=key":          "write key=N for field N, or leave sep= out",
		"record=line key=1 combine=sum sort=none": "combine=sum sort=none in spec",
		"record=line sort=none combine=first":     "write sort=key, or leave it out",
		"colour=red":                              "there are maps, parts, copies, ack, place, strict, compress, weight and ttl",
	} {
		r := command(t, "sh", "-c", `env printf "$2" > "$1/spec"`, "sh", stage, spec)
		state := sh(t, `cat "$1/state"`, stage)
		if r.code == 0 || !strings.Contains(r.err, "Invalid argument") || !strings.Contains(state, why) {
			t.Errorf("%s: %v, and state: %s", spec, r, state)
		}
	}
	r := command(t, "bash", "-c", `printf 'maps=2\nparts=3' > "$1/spec"`, "bash", stage) // by two calls of write(2)
	if state := sh(t, `cat "$1/state"`, stage); r.code == 0 || !strings.Contains(state, "write all of it in one line, as in: echo maps=16 parts=8 > spec") {
		t.Errorf("a spec of two lines: %v, and state: %s", r, state)
	}
	got := sh(t, `echo 'maps=1 compress=none place=writer' > "$1/spec"; cat "$1/spec"; echo 'maps=1 place=ring weight=100' > "$1/spec"; cat "$1/spec"
		echo 'compress=zstd weight=7 maps=1 strict=1' > "$1/spec"; cat "$1/spec"; echo 'maps=1 place=ring' > "$1/spec"`, stage)
	if want := "maps=1 parts=1 copies=2\nmaps=1 parts=1 copies=2 place=ring\nmaps=1 parts=1 copies=2 strict=1 weight=7 compress=zstd\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	sh(t, `: > "$1/.map-000000.0"; echo 'maps=1 place=ring' > "$1/spec"`, stage)
	r = command(t, "sh", "-c", `env printf maps=2 > "$1/spec"`, "sh", stage)
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(r.err, "Device or resource busy") || !strings.Contains(state, "attempts are written; make another stage") {
		t.Errorf("another spec after the first attempt: %v, and state: %s", r, state)
	}
}

// Who renames an attempt that cannot be its map learns from mv(1) what is wrong with it, and from
// the file state with what, and what to do.
func TestRenamesThatAreRefused(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=2 parts=2 copies=1")
	sh(t, `mkdir "$1/../none"; echo x > "$1/../none/.map-000000.0"; for map in 0 1 2; do echo x > "$1/.map-00000$map.0"; done; echo y > "$1/.map-000001.0.idx"`, stage)
	for script, want := range map[string][2]string{
		`mv "$1/.map-000002.0" "$1/map-000002"`:                 {"Numerical argument out of domain", ".map-000002.0 is of no map of stage job/stage, which has 2 maps from 0 on"},
		`mv "$1/.map-000000.0" "$1/map-000001"`:                 {"Numerical argument out of domain", ".map-000000.0 cannot become map-000001: it is an attempt of another map; rename it to map-000000"},
		`mv "$1/.map-000000.0" "$1/map-000000"`:                 {"Bad message", "it has no .idx file, which says where its 2 parts begin"},
		`mv "$1/.map-000001.0" "$1/map-000001"`:                 {"Bad message", "its .idx file has 2 bytes; 2 parts take 24"},
		`mv "$1/.map-000000.0" "$1/map-0"`:                      {"Operation not permitted", ".map-000000.0 cannot become map-0: rename it to map-000000, in its stage"},
		`: > "$1/.map-0.0"`:                                     {"nvalid argument", "MMMMMM has six digits"},
		`mv "$1/../none/.map-000000.0" "$1/../none/map-000000"`: {"Operation not supported", "stage job/none has no spec yet; write one, as in: echo maps=16 parts=8 > spec"},
	} {
		r := command(t, "sh", "-c", script, "sh", stage)
		state := sh(t, `cat "$1/state" "$1/../none/state"`, stage)
		if r.code == 0 || !strings.Contains(r.err, want[0]) || !strings.Contains(state, want[1]) {
			t.Errorf("%s: %v, and state: %s", script, r, state)
		}
	}
	if left := sh(t, `cd "$1" && ls -A | grep -c '^\.map-'`, stage); left != "4\n" {
		t.Errorf("files of attempts that are left: %s", left)
	}
}

// What is not for a program to make or to change is EPERM, whatever it is; who says of a
// job's directory what it is anyway, as mkdir -m 700 does, is told nothing.
func TestWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	_, stage := pool(t, "maps=1")
	sh(t, `mkdir -m 700 "$1/../other"; chown 0:0 "$1/.."; echo x > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"
echo x > "$1/../blob/.b"; mv "$1/../blob/.b" "$1/../blob/b"`, stage)
	for _, script := range []string{
		`chmod 755 "$1/.."`, `chmod 755 "$1"`, `chown 1 "$1"`, `touch "$1/.."`, `chmod 755 "$1/../.."`,
		`mkdir "$1/x"`, `ln -s a "$1/x"`, `ln "$1/map-000000" "$1/x"`, `mkfifo "$1/x"`,
		`ln -s a "$1/../x"`, `mkfifo "$1/../x"`, `echo x > "$1/../x"`, `echo x > "$1/../../x"`, `mknod "$1/../scratch/x" c 1 3`, `mkfifo "$1/../blob/.x"`,
		`chmod 600 "$1/map-000000"`, `touch "$1/map-000000"`, `truncate -s 0 "$1/map-000000"`, `setfattr -n user.x -v y "$1/map-000000"`,
		`setfattr -x user.rankfs.attempt "$1/map-000000"`, `setfattr -n user.x -v y "$1/part-000000"`, `setfattr -n user.x -v y "$1/../blob/b"`,
		`echo maps=9 > "$1/state"`, `: >> "$1/state"`, `chmod 600 "$1/state"`, `chmod 644 "$1/spec"`, `chown 1 "$1/spec"`, `chmod 644 "$1/../hold"`, `chown 1 "$1/../hold"`,
		`mv "$1/map-000000" "$1/map-000001"`, `mv "$1" "$1/../x"`, `mv "${1%/stage}" "${1%/job/stage}/x"`,
	} {
		if r := command(t, "sh", "-c", script, "sh", stage); r.code == 0 || !strings.Contains(r.err, "Operation not permitted") {
			t.Errorf("%s: %v", script, r)
		}
	}
}

// Who creates an attempt, opens one to write or allocates it, beyond the quota, is refused,
// and state says why.
func TestOpensBeyondTheQuota(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 copies=1")
	n.ok("shuffle", "create", "small/stage", "maps=2", "copies=1", "--quota", "8KiB")
	small := strings.Replace(stage, "/job/", "/small/", 1)
	sh(t, `: > "$1/.map-000001.0"; head -c 8192 /dev/zero > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"`, small)
	for script, what := range map[string]string{
		`echo x > "$1/.map-000001.1"`:        "write .map-000001.1 at ",
		`echo x >> "$1/.map-000001.0"`:       "write .map-000001.0 at ",
		`truncate -s 10 "$1/.map-000001.0"`:  "write .map-000001.0 at ",
		`fallocate -l 10 "$1/.map-000001.0"`: "write .map-000001.0 at ",
		`echo x > "$1/.map-000001.0.idx"`:    "write .map-000001.0.idx at ",
	} {
		r := command(t, "sh", "-c", script, "sh", small)
		state := sh(t, `cat "$1/state"`, small)
		if r.code == 0 || !strings.Contains(r.err, "Disk quota exceeded") || !strings.Contains(state, what) || !strings.Contains(state, "rankfs shuffle quota small SIZE") {
			t.Errorf("%s: %v, and state: %s", script, r, state)
		}
	}
	sh(t, `cat "$1/.map-000001.0"; mv "$1/.map-000001.0" "$1/map-000001"`, small) // an empty one is no more
}

// What parts that are ranges of keys weigh state says about, before any of them is made.
func TestStateOfRanges(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 parts=2 copies=1 record=fixed:16 key=1-8 by=range")
	sh(t, `for map in 000000 000001; do head -c 160000 /dev/urandom > "$1/.map-$map.0"; mv "$1/.map-$map.0" "$1/map-$map"; done`, stage)
	state := sh(t, `cat "$1/state"`, stage)
	_, line, _ := strings.Cut(state, "\nparts ")
	var said [2]int
	if _, err := fmt.Sscanf(strings.TrimSpace(line), "about 000000 %d, 000001 %d", &said[0], &said[1]); err != nil {
		t.Fatalf("%v\n%s", err, state)
	}
	for part, about := range said {
		size, err := strconv.Atoi(strings.TrimSpace(sh(t, `cat "$1" | wc -c`, fmt.Sprintf("%s/part-%06d", stage, part))))
		must(t, err)
		if about < size-size/4 || about > size+size/4 {
			t.Errorf("part %d has %d bytes, and is said to have about %d", part, size, about)
		}
	}
	n.ok("shuffle", "rm", "job")
}
