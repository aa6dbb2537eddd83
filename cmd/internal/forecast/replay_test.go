package forecast

import (
	"slices"
	"testing"

	"rankfs/cache/simulate"
	"rankfs/cache/trace"
)

// All ranks go through their batches as the trace does, which may be of a view that
// is smaller or larger.
func TestReplay(t *testing.T) {
	for _, test := range []struct {
		partitions, ranks int
		want              [][]uint32
	}{
		{4, 1, [][]uint32{{0, 2, 1, 3}, {0}}},
		{8, 2, [][]uint32{{0, 1, 4, 5, 2, 3, 6, 7}, {0, 1}}},
		{7, 2, [][]uint32{{0, 1, 4, 5, 2, 3, 6, 7}, {0, 1}}}, // each rank has as many
		{8, 1, [][]uint32{{0, 1, 4, 5, 2, 3, 6, 7}, {0, 1}}},
		{2, 1, [][]uint32{{0, 1}, {0}}},
	} {
		tr := &trace.Trace{Steps: 4}
		for _, step := range []uint64{0, 2, 1, 3, 0} {
			tr.Add(step)
		}
		s := simulate.Scenario{Nodes: 1, Ranks: test.ranks, Epochs: 5, Partitions: test.partitions, Bytes: []int64{100}}
		(&Job{trace: tr}).replay(&s)
		if !slices.EqualFunc(s.Reads, test.want, slices.Equal) || s.Epochs != len(test.want) {
			t.Errorf("%d batches of %d ranks: %d epochs of %v, want %v", test.partitions, test.ranks, s.Epochs, s.Reads, test.want)
		}
	}
}
