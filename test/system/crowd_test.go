package system_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ranks that hold more together than there is memory for: that is said when the
// dataset is made and shown, by plan, and by simulate, which predicts nothing.
func TestRanksNeedMoreThanMemory(t *testing.T) {
	t.Parallel()
	const ranks, records = 8, 1024 // 4 MiB a batch
	n, s := start(t, "--ram", "16MiB"), newFixed(t, ranks*records, recordSize)
	made := n.ok("dataset", "create", "d", "--source", s.uri, "--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(records))
	for _, said := range []string{made.out, n.ok("dataset", "show", "d").out, n.ok("plan", "d").out} {
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
}
