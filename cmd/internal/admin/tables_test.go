package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/meta/dispatch"
	"rankfs/meta/state"
)

func TestNodesTable(t *testing.T) {
	lag := uint64(12)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := nodesTable(control.Cluster{Self: "2", Leader: "1", Term: 7, Nodes: []control.Member{
		{ID: "1", Host: "node1", Addr: "node1:7420", State: "up", Voter: true, Role: "operator", Entered: at},
		{ID: "2", Host: "node2.example.com", Addr: "node2:7420", State: "up", Voter: true, Lag: &lag, Entered: at.Add(time.Second)},
		{ID: "3", Host: "node3", Called: "node4", Addr: "[::1]:7420", State: "draining", Role: "operator", Entered: at},
	}})
	want := strings.TrimPrefix(`
node  host               address     state     vote    role      lag  since                 here  called  term
1     node1              node1:7420  up        leader  operator  -    2026-03-01T12:00:00Z  -     -       -
2     node2.example.com  node2:7420  up        voter   -         12   2026-03-01T12:00:01Z  here  -       7
3     node3              [::1]:7420  draining  -       operator  -    2026-03-01T12:00:00Z  -     node4   -
`, "\n")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What is settled and queued, the latest last.
func TestTablesOfPlansAndQueues(t *testing.T) {
	k := catalogtest.New(t, 2)
	a, b := catalogtest.Node(0).ID, catalogtest.Node(1).ID
	name := func(epoch, ranks int) string {
		return fmt.Sprintf("d@epoch=%d,ranks=%d,seed=0,order=none,step=8,tail=keep,assign=local", epoch, ranks)
	}
	k.Apply(
		&state.PutDataset{Name: "d", Registration: []byte("{}"), Index: strings.Repeat("0", 64)},
		&state.Settle{View: name(7, 4), Generation: 1, Nodes: state.Runs{{Node: a, Count: 1}, {Node: b, Count: 2}, {Node: a, Count: 1}}},
		&state.Settle{View: name(0, 16), Generation: 1, Nodes: state.Runs{{Node: b, Count: 16}}},
		&state.OpenQueue{View: name(7, 4), Generation: 1, Units: 1000, Policy: "flow"},
		&state.OpenQueue{View: name(0, 4), Generation: 1, Units: 2, Policy: "probability"},
		&state.TakeUnit{View: name(7, 4), Reader: "w", Node: a, Take: 5, Nonce: 1},
		&state.TakeUnit{View: name(7, 4), Reader: "w", Node: a, Finish: true, Take: 6, Nonce: 2},
	)
	giveBack(k, name(0, 4), b, 1, state.MaxReturns-1)
	if got, want := string(plansTable(k.State)), strings.TrimPrefix(`
view                                                                ranks  nodes  settled
d@epoch=7,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local   4      2      1970-01-01T00:00:06Z
d@epoch=0,ranks=16,seed=0,order=none,step=8,tail=keep,assign=local  16     1      1970-01-01T00:00:07Z
`, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := string(queuesTable(k.State)), strings.TrimPrefix(`
view                                                               batches  done  leased  set_aside  readers  policy       run  opened
d@epoch=7,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  1000     1     1       0          1        flow         0    1970-01-01T00:00:08Z
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  2        0     0       0          0        probability  0    1970-01-01T00:00:09Z
`, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What readers of queues have, and which node claims how many ranks.
func TestLeases(t *testing.T) {
	k := catalogtest.New(t, 2)
	a, b := catalogtest.Node(0).ID, catalogtest.Node(1).ID
	const view = "d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local"
	k.Apply(
		&state.PutDataset{Name: "d", Registration: []byte("{}"), Index: strings.Repeat("0", 64)},
		&state.OpenQueue{View: view, Generation: 1, Units: 100, Policy: "flow"},
		&state.TakeUnit{View: view, Reader: "w", Node: b, Rank: 3, Take: 7, Nonce: 1},
		&state.TakeUnit{View: view, Reader: "x", Node: b, Rank: 2, Take: 5, Nonce: 1},
		&state.TakeUnit{View: view, Reader: "y", Node: a, Rank: 0, Take: 9, Nonce: 1},
		&state.TakeUnit{View: view, Reader: "y", Node: a, Rank: 0, Finish: true, Take: -1, Nonce: 2})
	for rank := range uint64(3) {
		k.Apply(&state.Claim{Dataset: "d", Generation: 1, Ranks: 4, Rank: rank, Node: a})
	}
	k.Apply(&state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: b}, &state.Claim{Dataset: "d", Generation: 1, Ranks: 4, Rank: 0, Node: b})
	if got, want := string(leasesTable(k.State)), strings.TrimPrefix(`
view                                                               batch                rank  host  since
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  rank-3/batch-000001  3     b     1970-01-01T00:00:07Z
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  rank-1/batch-000001  2     b     1970-01-01T00:00:08Z
`, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	q := queues{state: k.State}
	var got []string
	for _, l := range q.leases() {
		since := "-"
		if l.Since != nil {
			since = stamp(l.Since.UnixNano())
		}
		got = append(got, fmt.Sprintf("%s %d %d %s", l.Host, l.Ranks, l.Batches, since))
	}
	if want := "b 2 2 1970-01-01T00:00:07Z; a 2 0 -"; strings.Join(got, "; ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// giveBack has so many workers take a unit and leave.
func giveBack(k *catalogtest.Cluster, view, node string, unit int64, times int) {
	for range times {
		worker := fmt.Sprint("w", k.State.Summary().Applied)
		k.Apply(
			&state.TakeUnit{View: view, Reader: worker, Node: node, Rank: 3, Take: unit, Nonce: 1},
			&state.LeaveQueue{View: view, Reader: worker})
	}
}

// Below the queues is what was set aside of them.
func TestTableOfBatchesSetAside(t *testing.T) {
	k := catalogtest.New(t, 2)
	const view = "d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local"
	k.Apply(
		&state.PutDataset{Name: "d", Registration: []byte("{}"), Index: strings.Repeat("0", 64)},
		&state.OpenQueue{View: view, Generation: 1, Units: 100, Policy: "flow"})
	for _, unit := range []int64{99, 7} {
		giveBack(k, view, catalogtest.Node(1).ID, unit, state.MaxReturns)
	}
	if got, want := string(queuesTable(k.State)), strings.TrimPrefix(`
view                                                               batches  done  leased  set_aside  readers  policy  run  opened
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  100      0     0       2          0        flow    0    1970-01-01T00:00:06Z

view                                                               batch                returned  last                  rank  host  cause
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  rank-3/batch-000001  4         1970-01-01T00:00:22Z  3     b     closed
d@epoch=0,ranks=4,seed=0,order=none,step=8,tail=keep,assign=local  rank-3/batch-000024  4         1970-01-01T00:00:14Z  3     b     closed
`, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want := "rank-3/batch-000001, the first of 2: 4 readers gave it back, the last one of rank 3 on b, which ended or closed the queue"
	if got := dispatch.FirstSetAside(k.State, view); got != want {
		t.Errorf("got %s", got)
	}
	k.Apply(&state.OpenQueue{View: strings.Replace(view, "epoch=0", "epoch=1", 1), Generation: 1, Units: 1, Policy: "flow"})
	giveBack(k, strings.Replace(view, "epoch=0", "epoch=1", 1), catalogtest.Node(0).ID, 0, state.MaxReturns)
	if got := dispatch.FirstSetAside(k.State, strings.Replace(view, "epoch=0", "epoch=1", 1)); !strings.HasPrefix(got, "rank-0/batch-000000: 4 readers") {
		t.Errorf("got %s", got)
	}
}

// A cluster may have very many plans; the file has the latest.
func TestLongTable(t *testing.T) {
	k := catalogtest.New(t, 1)
	k.Apply(&state.PutDataset{Name: "d", Registration: []byte("{}"), Index: strings.Repeat("0", 64)})
	for epoch := range maxLines + 5 {
		k.Apply(&state.Settle{
			View:       fmt.Sprintf("d@epoch=%d,ranks=1,seed=0,order=none,step=8,tail=keep,assign=local", epoch),
			Generation: 1, Nodes: state.Runs{{Node: catalogtest.Node(0).ID, Count: 1}},
		})
	}
	lines := strings.Split(strings.TrimSpace(string(plansTable(k.State))), "\n")
	if len(lines) != 1+maxLines || !strings.HasPrefix(lines[1], "d@epoch=5,") || !strings.HasPrefix(lines[maxLines], "d@epoch=1004,") {
		t.Errorf("%d lines, from %s to %s", len(lines), lines[1], lines[len(lines)-1])
	}
}
