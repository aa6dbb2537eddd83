package system_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// The jobs of a node have so much memory together: what one has no other gets, what it
// gives back another may have, and so much is counted as used of what the cache may have.
func TestMemoryOfJobs(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	n := newNode(t).startPool("--ram", "112MiB")
	shuffle := n.mount + "/shuffle"
	sh(t, `mkdir "$1/a" "$1/b"`, shuffle)
	write := func(name, mebibytes string) result {
		return command(t, "sh", "-c", `rm -f "$1"; dd if=/dev/zero of="$1" bs=1M count="$2" status=none; stat -c %s "$1"`, "sh", shuffle+"/"+name, mebibytes)
	}
	// A cache that is full of batches makes way for what jobs write.
	s := newFixed(t, 110*batchRecords, recordSize)
	n.create("d", s)
	r := newRank(t)
	for k := range 110 {
		r.batch(n.batch("d", 0, k))
	}
	if used := n.status().Tiers[0].Used; used <= 72*mib {
		t.Fatalf("the cache has %d bytes only", used)
	}
	if got := write("a/scratch/x", "40"); got.out != "41943040\n" {
		t.Errorf("the first job: %v", got)
	}
	eventually.True(t, "the cache makes way", func() bool { return n.status().Tiers[0].Used <= 72*mib })
	for k := range 110 {
		if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
			t.Fatalf("batch %d has other bytes", k)
		}
	}
	if used := n.status().Tiers[0].Used; used > 72*mib {
		t.Errorf("the cache has %d bytes beside 40 MiB of the pool", used)
	}
	if got := write("b/scratch/y", "40"); !strings.Contains(got.err, "No space left") {
		t.Errorf("more than there is left: %v", got)
	}
	eventually.True(t, "a job gets what is left", func() bool { return write("b/scratch/y", "23").err == "" })
	sh(t, `rm -r "$1"/a`, shuffle)
	eventually.True(t, "a job gets what another one gave back", func() bool { return write("b/scratch/y", "63").err == "" })
	sh(t, `rm "$1"`, shuffle+"/b/scratch/y")
	eventually.True(t, "the cache has what the pool gave back", func() bool {
		for k := range 110 {
			r.batch(n.batch("d", 0, k))
		}
		return n.status().Tiers[0].Used > 72*mib
	})
}

// However many jobs write at the same time, one that begins has room, too: what the others
// may have makes way for it.
func TestMemoryOfManyJobs(t *testing.T) {
	t.Parallel()
	n := newNode(t).startPool("--ram", "112MiB")
	sh(t, `
open=
for job in $(seq 60); do
	mkdir "$1/$job"
	exec 3> "$1/$job/scratch/x"    # open, so that the job is in use
	head -c 65536 /dev/zero >&3 || { echo "job $job" >&2; kill $open; exit 1; }
	sleep 60 3>&3 > /dev/null 2>&1 & open="$open $!"
	exec 3>&-
done
kill $open`, n.mount+"/shuffle")
}

// Parts that were read make way for the next: they are read once, and fresh memory takes
// longer to get than their bytes. The latest stay.
func TestMemoryOfPartsThatWereRead(t *testing.T) {
	t.Parallel()
	const mib, parts = 1 << 20, 24
	n, stage := pool(t, fmt.Sprintf("maps=2 parts=%d copies=1", parts))
	sh(t, `
for map in 0 1; do
	head -c $(($2 << 19)) /dev/urandom > "$1/.map-00000$map.0"
	python3 -c "import struct, sys; sys.stdout.buffer.write(struct.pack('<$(($2 + 1))Q', *(i << 19 for i in range($2 + 1))))" > "$1/.map-00000$map.0.idx"
	mv "$1/.map-00000$map.0" "$1/map-00000$map"
done`, stage, strconv.Itoa(parts))
	for part := range parts {
		sh(t, `piece() { tail -c +$(($2 + 1)) "$1" | head -c 524288; }
{ piece "$1/map-000000" $3; piece "$1/map-000001" $3; } | cmp - "$1/part-$2"`, stage, fmt.Sprintf("%06d", part), strconv.Itoa(part<<19))
	}
	if used := n.status().Tiers[0].Used; used < mib || used > 8*mib {
		t.Errorf("the cache has %d bytes of %d parts of 1 MiB that were read", used, parts)
	}
}

// Parts of stages that are gone, or were reset, free their memory for the next: no process can read
// them again.
func TestMemoryOfPartsThatAreGone(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	n, stage := pool(t, "maps=1 parts=1 copies=1")
	for range 2 {
		for _, end := range []func(){
			func() { n.ok("shuffle", "reset", "job/stage") },
			func() { sh(t, `rm -r "$1"; mkdir "$1"; echo 'maps=1 parts=1 copies=1' > "$1/spec"`, stage) },
		} {
			sh(t, `head -c 4M /dev/urandom > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"; cmp "$1/map-000000" "$1/part-000000"`, stage)
			if used := n.status().Tiers[0].Used; used < 4*mib || used > 6*mib {
				t.Errorf("the cache has %d bytes, where one part of 4 MiB can be read", used)
			}
			end()
		}
	}
}

// A job with a quota has no more in all its copies: renames, new attempts and reservations
// that would are EDQUOT, and what is removed makes room.
func TestQuotaOfAJob(t *testing.T) {
	t.Parallel()
	n := newNode(t).startPool("--pool-ram", "16MiB")
	n.ok("shuffle", "create", "job", "--quota", "1MiB")
	stage := n.mount + "/shuffle/job/stage"
	const over = "Disk quota exceeded"
	sh(t, `mkdir "$1"; echo 'maps=3 copies=1' > "$1/spec"
head -c 600K /dev/zero > "$1/.map-000000.0"; mv "$1/.map-000000.0" "$1/map-000000"
head -c 600K /dev/zero > "$1/.map-000001.0"; : > "$1/.map-000002.0"`, stage)
	for _, c := range []string{
		`mv "$1/.map-000001.0" "$1/map-000001"`,
		`fallocate -l 600K "$1/.map-000002.0"`,
	} {
		if r := command(t, "sh", "-c", c, "sh", stage); r.code == 0 || !strings.Contains(r.err, over) {
			t.Errorf("%s: %v", c, r)
		}
	}
	sh(t, `fallocate -l 400K "$1/.map-000002.0"; mv "$1/.map-000002.0" "$1/map-000002"
head -c 24K /dev/zero > "$1/.map-000001.1"; mv "$1/.map-000001.1" "$1/map-000001"`, stage)
	if r := command(t, "sh", "-c", `: > "$1/.map-000001.2"`, "sh", stage); r.code == 0 || !strings.Contains(r.err, over) {
		t.Errorf("a new attempt: %v", r)
	}
	sh(t, `rm "$1/map-000002"; : > "$1/.map-000001.2"; fallocate -l 400K "$1/.map-000001.2"`, stage)
	if r := command(t, "sh", "-c", `: > "$1/.map-000001.3"`, "sh", stage); r.code == 0 || !strings.Contains(r.err, over) {
		t.Errorf("a new attempt beside what another has reserved: %v", r)
	}
	n.ok("shuffle", "quota", "job", "2MiB")
	sh(t, `: > "$1/.map-000001.3"; fallocate -l 1M "$1/.map-000001.3"`, stage)
}
