package system_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/test/eventually"
)

// partsOf are the lines of some maps as a stage has them that divides whole lines by their
// hash and sorts them: one part after the other.
func partsOf(lines [][]byte, parts uint64) (all [][]byte) {
	lines = sorted(lines)
	for part := range parts {
		for _, line := range lines {
			if xxhash.Sum64(bytes.TrimSuffix(line, []byte("\n")))%parts == part {
				all = append(all, line)
			}
		}
	}
	return all
}

// commitLines commits lines as the maps of a stage, every third to each of three.
func commitLines(t *testing.T, stage string, lines [][]byte) {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 {
		var text []byte
		for k := i; k < len(lines); k += 3 {
			text = append(text, lines[k]...)
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), text, 0o600))
	}
	sh(t, `for i in 0 1 2; do cp "$2/$i" "$1/.map-00000$i.0"; mv -f "$1/.map-00000$i.0" "$1/map-00000$i"; done`, stage, dir)
}

// The parts of a sealed stage are a dataset, in any order, and its records those that a
// plain sort has. While it is there, the job that it is made of stays, also when that is not used
// any more, and cannot be removed; a reset makes it stale, and a refresh takes what is there
// then. Afterwards the job goes.
func TestDatasetOfAStage(t *testing.T) {
	t.Parallel()
	const spec = "maps=3 parts=4 copies=1 record=line sort=key ttl=1s"
	n, _ := pool(t, "maps=1")
	stage := n.mount + "/shuffle/words/sorted"
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"`, stage, spec)
	used, err := os.Create(n.mount + "/shuffle/words/scratch/used")
	must(t, err)
	defer used.Close()
	lines := newLines(t, 3000).records
	last := &lines[len(lines)-1]
	*last = append(bytes.TrimSuffix(*last, []byte("\n")), '\n')
	says := func(r result, code int, words ...string) {
		t.Helper()
		for _, word := range words {
			if r.code != code || !strings.Contains(strings.Join(strings.Fields(r.out+r.err), " "), word) {
				t.Errorf("%v, want exit %d and %q", r, code, word)
			}
		}
	}
	create := []string{"dataset", "create", "words", "--source", "shuffle:words/sorted", "--ranks", "4", "--batch", "100"}
	says(n.cli(create...), 4, "stage words/sorted is not sealed yet: 0 of 3 maps are committed; not yet 0-2")
	commitLines(t, stage, lines)
	n.ok(create...)
	must(t, used.Close())

	reads := func(records [][]byte) {
		t.Helper()
		s := source{records: records}
		holdToSource(t, s, n.readView(t, "words"), "none", "keep", 400)
		holdToSource(t, s, n.readView(t, "words@order=full,seed=5"), "full", "keep", 400)
		var parts []byte
		for k := range 4 {
			parts = append(parts, read(t, n.batch("words@ranks=1,batch=chunk", 0, k))...)
		}
		if !bytes.Equal(parts, s.all(0, len(records))) {
			t.Error("batches that are parts have other bytes")
		}
		says(n.cli("dataset", "verify", "words"), 0, "all as indexed")
	}
	reads(partsOf(lines, 4))
	for _, script := range []string{`rm -r "$1"`, `rm "$1/map-000001"`, `rm -r "${1%/sorted}"`} {
		if r := command(t, "sh", "-c", script, "sh", stage); r.code == 0 || !strings.Contains(r.err, "Device or resource busy") {
			t.Errorf("%s: %v", script, r)
		}
	}
	const advice = "is in use: words is made of it; remove that first: rankfs dataset rm words"
	if state := sh(t, `cat "$1/state"`, stage); !strings.Contains(state, "not while a dataset is made of it: words") || !strings.Contains(state, advice) {
		t.Errorf("its state is\n%s", state)
	}
	for _, name := range []string{"words", "words/sorted"} {
		says(n.cli("shuffle", "rm", name), 4, advice)
	}

	n.ok("shuffle", "reset", "words/sorted")
	if got := newRank(t).errno("open", n.batch("words@seed=7", 0, 0)); got != "ESTALE" {
		t.Errorf("after a reset an open is %q, want ESTALE", got)
	}
	says(n.cli("dataset", "show", "words"), 0, "stage words/sorted", "it was reset", "index it again with: rankfs dataset refresh words")
	says(n.cli("dataset", "refresh", "words"), 4, "not sealed yet")
	lines = append(slices.Clone(lines[:1500]), bytes.ToUpper(lines[2000]))
	commitLines(t, stage, lines)
	n.ok("dataset", "refresh", "words")
	reads(partsOf(lines, 4))

	// The clock of a job that began to be unused later runs out, and this one stays.
	sh(t, `mkdir -p "$1"; echo "$2" > "$1/spec"; : > "$1/../scratch/used"`, n.mount+"/shuffle/other/stage", spec)
	gone := func(job string) func() bool { return func() bool { return n.cli("shuffle", "show", job).code == 3 } }
	eventually.Within(t, waitTime, "the job that is not used goes", gone("other"))
	says(n.cli("shuffle", "show", "words"), 0, "not while a dataset is made of it: words")
	reads(partsOf(lines, 4))
	n.ok("dataset", "rm", "words")
	eventually.Within(t, waitTime, "the job goes once no dataset is made of it", gone("words"))
}

// Without records in the spec those of a dataset are what each map has of each part, also if that
// is nothing, part after part.
func TestDatasetOfPieces(t *testing.T) {
	t.Parallel()
	n, stage := pool(t, "maps=2 parts=3 copies=1")
	sh(t, lay+`lay "$1" .map-000000.0 a '' ccc; lay "$1" .map-000001.0 A BB CC
for map in 0 1; do mv "$1/.map-00000$map.0" "$1/map-00000$map"; done`, stage)
	n.ok("dataset", "create", "pieces", "--source", "shuffle:job/stage", "--ranks", "1", "--batch", "5")
	var got []string
	for _, record := range n.readView(t, "pieces").unique() {
		got = append(got, string(record))
	}
	if want := []string{"a", "A", "", "BB", "ccc", "CC"}; !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}
	if show := n.ok("dataset", "show", "pieces").out; !strings.Contains(show, "what one map has of a part") {
		t.Errorf("it does not say what its records are:\n%s", show)
	}
	n.ok("dataset", "rm", "pieces")
}
