package system_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/test/eventually"
)

// mapFiles are the files of committed maps, below the state of a daemon.
func mapFiles(t *testing.T, state, number string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, "pool", "*", "*", "maps", number+".*"))
	must(t, err)
	return names
}

// flipBit changes a bit of a file: of its byte at.
func flipBit(t *testing.T, name string, at int) {
	t.Helper()
	sh(t, `chmod u+w "$1"; python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1)[0] ^ 16
    f.seek(int(sys.argv[2])); f.write(bytes([b]))' "$1" "$2"; chmod u-w "$1"`, name, fmt.Sprint(at))
}

// A committed map whose bytes change where they are kept is not given to a reader: opened by part
// or whole, it is given up, and a commit of the same bytes heals it. So it is with one whose table
// changes, and with one that changed while its daemon did not run.
func TestDamagedMaps(t *testing.T) {
	t.Parallel()
	const lost = "No data available"
	const committed = `for m in 0 1; do lay "$1" .map-00000$m.0 aaaa bbbb; mv "$1/.map-00000$m.0" "$1/map-00000$m"; done; cat "$1/map-000000"`
	for _, c := range []struct {
		name, before, script, suffix string
		at                           int
		restart                      bool
	}{
		{name: "a part", script: `cat "$1/part-000001"`, at: 5},
		{name: "the map", script: `cat "$1/map-000000"`, at: 1},
		{name: "a part, by its table", script: `cat "$1/part-000000"`, suffix: ".idx", at: 3},
		{name: "a part, by its table's sum", script: `cat "$1/part-000000"`, suffix: ".idx", at: 9},
		{name: "a part, by a table that was right before", before: `cat "$1/part-000000@maps=0-0"`, script: `cat "$1/part-000001"`, suffix: ".idx", at: 25},
		{name: "state, after a restart", at: 6, restart: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, stage := pool(t, "maps=2 parts=2 copies=1")
			sh(t, lay+committed+";"+c.before, stage)
			name := ""
			for _, one := range mapFiles(t, n.state, "000000") {
				if strings.HasSuffix(one, ".idx") == (c.suffix != "") {
					name = one
				}
			}
			if c.restart {
				n.Kill()
			}
			flipBit(t, name, c.at)
			if c.restart {
				n = n.start("--pool-ram", "64MiB")
			} else if r := command(t, "sh", "-c", c.script, "sh", stage); r.code == 0 || r.out != "" || !strings.Contains(r.err, lost) {
				t.Errorf("damaged: %v", r)
			}
			eventually.Within(t, waitTime, "the state says what is lost", func() bool {
				return strings.Contains(sh(t, `cat "$1/state"`, stage), "lost       map-000000\n")
			})
			if left := mapFiles(t, n.state, "000000"); len(left) > 0 {
				t.Errorf("what is damaged stays: %v", left)
			}
			got := sh(t, lay+`lay "$1" .map-000000.7 aaaa bbbb; mv "$1/.map-000000.7" "$1/map-000000"
cat "$1/map-000000" "$1/part-000000" "$1/part-000001"`, stage)
			if want := "aaaabbbbaaaaaaaabbbbbbbb"; got != want {
				t.Errorf("after the same bytes were committed again: %q, want %q", got, want)
			}
			sh(t, `rm -r "$1"; while grep -q "$2/pool" /proc/self/mounts; do sleep 0.1; done`, filepath.Dir(stage), n.state)
		})
	}
}
