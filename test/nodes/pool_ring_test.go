package nodes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// With place=ring maps are where their names say, whichever node writes them; else the
// first copy is on that node.
func TestPlacedByTheRing(t *testing.T) {
	t.Parallel()
	const number = 24
	c := cluster.Bare(t)
	nodes := newTeam(t, c, c.Hosts()[:3], "--pool-ram", "64MiB").Nodes
	defer func() { endJob(t, nodes) }()
	write := func(on int, stage string) map[string]int {
		inJob(nodes[on], `python3 -c '
import os, sys
for number in range(int(sys.argv[2])):
    name = f"{sys.argv[1]}/.map-{number:06d}.0"
    open(name, "w").write(f"{number:06d}\n")
    os.rename(name, f"{sys.argv[1]}/map-{number:06d}")' "$1/$2" "$3"
[ "$(cat "$1/$2/part-000000")" = "$(seq -f %06g 0 $(($3-1)))" ]`, stage, fmt.Sprint(number))
		return keptBy(t, nodes[on], "job/"+stage)
	}
	nodes[0].Do("shuffle", "create", "job/ring", fmt.Sprintf("maps=%d", number), "copies=1", "place=ring")
	nodes[0].Do("shuffle", "create", "job/writer", fmt.Sprintf("maps=%d", number), "copies=1", "place=writer")
	first := write(0, "ring")
	if len(first) != len(nodes) {
		t.Errorf("maps of one writer are on %v", first)
	}
	nodes[0].Do("shuffle", "reset", "job/ring")
	if second := write(1, "ring"); !maps.Equal(second, first) {
		t.Errorf("by another writer maps are on %v, and were on %v", second, first)
	}
	if got := write(2, "writer"); !maps.Equal(got, map[string]int{nodes[2].Host.Name: number}) {
		t.Errorf("without a ring maps are on %v", got)
	}
}

// keptBy is how many maps of a stage each host has.
func keptBy(t *testing.T, asked *daemon.Place, stage string) map[string]int {
	t.Helper()
	var shown struct {
		Nodes []struct {
			Host string
			Maps int
		}
	}
	text := asked.Do("shuffle", "show", "--json", stage)
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	kept := make(map[string]int)
	for _, n := range shown.Nodes {
		kept[n.Host] = n.Maps
	}
	return kept
}

// What is written on a node with --pool-ram 0 is on other nodes when its rename returns, in as
// many copies as they are, and nothing of it stays.
func TestAGuestOfThePool(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := gather(t, c, c.Hosts()[:2])
	other, guest := m.Nodes[0], m.Nodes[1]
	other.Options("--pool-ram", "64MiB")
	guest.Options("--pool-ram", "0")
	m.Found()
	defer func() { endJob(t, m.Nodes) }()
	inJob(guest, `mkdir -p "$1/s" "$1/large"
echo 'maps=3 parts=2 record=line key=1 sort=key' > "$1/s/spec"
for m in 0 1 2; do seq "$m" 3 3000 > "$1/s/.map-00000$m.0"; mv "$1/s/.map-00000$m.0" "$1/s/map-00000$m"; done
echo 'maps=1 parts=1 copies=1' > "$1/large/spec"
head -c 12000000 /dev/zero > "$1/large/.map-000000.0"; mv "$1/large/.map-000000.0" "$1/large/map-000000"
seq 9 > "$1/blob/.numbers"; mv "$1/blob/.numbers" "$1/blob/numbers"`)
	if got := keptBy(t, guest, "job/s"); !maps.Equal(got, map[string]int{other.Host.Name: 3}) {
		t.Errorf("maps are on %v", got)
	}
	for _, n := range m.Nodes {
		got := inJob(n, `export LC_ALL=C; sort -c "$1/s/part-000000"; sort -c "$1/s/part-000001"
[ "$(sort -n "$1/s/part-000000" "$1/s/part-000001" | sha256sum)" = "$(seq 0 3000 | sha256sum)" ]
cmp -n 12000000 "$1/large/part-000000" /dev/zero; tr -d '\n' < "$1/blob/numbers"`)
		if got != "123456789" {
			t.Errorf("on %s the blob has %q", n.Host.Name, got)
		}
	}
	if out := guest.Must("find", guest.Dir+"/state/pool", "-type", "f", "-size", "+0"); out != "" {
		t.Errorf("the guest has kept %s", out)
	}
}
