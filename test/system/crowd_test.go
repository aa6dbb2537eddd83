package system_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ranks that hold more together than there is memory for: that is said when the
// dataset is made and shown, by plan and explain, by simulate, which predicts nothing,
// and by the first open that finds no room beside the others of its step.
func TestRanksNeedMoreThanMemory(t *testing.T) {
	t.Parallel()
	const ranks, records = 8, 1024 // 4 MiB a batch
	n, s := start(t, "--ram", "16MiB"), newFixed(t, ranks*records, recordSize)
	made := n.ok("dataset", "create", "d", "--source", s.uri, "--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(records))
	for _, said := range []string{made.out, n.ok("dataset", "show", "d").out, n.ok("plan", "d").out, n.ok("explain", "d").out} {
		said = strings.Join(strings.Fields(said), " ")
		if !strings.Contains(said, "8 ranks on a node, each with a batch of 4MiB, need 32MiB together, and there are 16MiB") || !strings.Contains(said, "--ram 32MiB") {
			t.Errorf("it is not said that the ranks do not fit:\n%s", said)
		}
	}
	if r := n.cli("simulate", "d"); r.code == 0 || !strings.Contains(r.err, "need 32 MiB together") {
		t.Errorf("simulate predicts what cannot be: %v", r)
	}
	if said := n.ok("plan", "d@ranks=4,batch=1024").out; strings.Contains(said, "together") {
		t.Errorf("4 ranks do fit:\n%s", said)
	}
	all := make([]*rank, ranks)
	for i := range all {
		all[i] = newRank(t)
	}
	for i := range 4 {
		all[i].open("b", n.batch("d", i, 0))
	}
	if a := all[4].try(order{Do: "open", Name: "b", Path: n.batch("d", 4, 0)}); a.Errno != "ENOSPC" {
		t.Errorf("open of the fifth rank: %+v, want ENOSPC", a)
	}
	if n.logged("the 4 batches of step 0 that ranks hold take 16777216 bytes", "; mount with --ram 32MiB or more, add --nvme") == 0 {
		t.Errorf("the log does not say how much memory there should be:\n%s", n.tail())
	}
	all[0].well(order{Do: "close", Name: "b"})
	all[4].open("b", n.batch("d", 4, 0))
	if got, want := all[4].do("read", "b").Sum, sumOf(s.all(4*records, 5*records)); got != want {
		t.Errorf("the fifth rank reads %s, want %s", got, want)
	}
}
