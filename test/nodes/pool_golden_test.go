package nodes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/test/daemon"
)

// holdGolden has nodes commit fixed maps in turn, and holds the parts that each of them reads
// against the hashes that these have in every release.
func holdGolden(t *testing.T, nodes []*daemon.Place) {
	t.Helper()
	dir, err := filepath.Abs("../../shuffle/record/testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(dir, "parts"))
	if err != nil {
		t.Fatal(err)
	}
	var specs, want []string
	for row := range strings.Lines(string(rows)) {
		hash, spec, _ := strings.Cut(strings.TrimSpace(row), " ")
		specs, want = append(specs, spec), append(want, hash)
	}
	run := func(n *daemon.Place, do string, number int) string {
		return inJob(n, `python3 -c "$2" "$@"`, append([]string{goldenScript, do, dir, fmt.Sprint(number)}, specs...)...)
	}
	run(nodes[0], "specify", 0)
	for i := range 3 {
		run(nodes[i%len(nodes)], "commit", i)
	}
	for _, n := range nodes {
		parts := strings.Split(run(n, "read", 0), "\x00")
		for i, spec := range specs {
			if got := fmt.Sprintf("%016x", xxhash.Sum64String(parts[i])); got != want[i] {
				t.Errorf("%s: on %s of %d nodes parts hash to %s, not %s", spec, n.Host.Name, len(nodes), got, want[i])
			}
		}
	}
	endJob(t, nodes)
}

// goldenScript makes the stages of all specs, commits a map in each, or prints the parts. Those
// that are ranges of keys are made of few slices of each map, and of more.
const goldenScript = `
import os, sys
job, _, do, dir, number, *specs = sys.argv[1:]
for i, spec in enumerate(specs):
    fixed, all = "record=fixed" in spec, []
    for parts in (4, 40) if "by=range" in spec else (4,):
        stage = f"{job}/s{i}-{parts}"
        if do == "specify":
            os.makedirs(stage)
            with open(f"{stage}/spec", "w") as f:
                f.write(f"maps={2 if fixed else 3} parts={parts} {spec}")
        elif do == "commit" and not (fixed and number == "2"):
            with open(f"{dir}/map-{number}") as f:
                text = f.read()
            with open(f"{stage}/.map-00000{number}.0", "w") as f:
                f.write(text[:2000 + 10 * int(number)] if fixed else text)
            os.rename(f"{stage}/.map-00000{number}.0", f"{stage}/map-00000{number}")
        elif do == "read":
            for part in range(parts):
                with open(f"{stage}/part-{part:06d}") as f:
                    all.append(f.read())
    if do == "read":
        print("|".join(all), end="\0")
`
