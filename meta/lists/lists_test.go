package lists_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/lists"
)

// Equal lists have one number, others another, and each is found by its number.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table lists.Table
		var all [][]int32
		for _, list := range rapid.SliceOf(rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 4)).Draw(t, "lists") {
			n, err := table.Number(list)
			if err != nil {
				t.Fatal(err)
			}
			is := func(other []int32) bool { return slices.Equal(list, other) }
			if known := slices.IndexFunc(all, is); known < 0 {
				all = append(all, list)
			}
			if want := slices.IndexFunc(all, is); int(n) != want {
				t.Fatalf("%v is %d, want %d", list, n, want)
			}
		}
		for n, list := range all {
			if got := table.At(int32(n)); !slices.Equal(got, list) {
				t.Fatalf("%d is %v, want %v", n, got, list)
			}
		}
		if table.Len() != len(all) {
			t.Fatalf("%d lists, want %d", table.Len(), len(all))
		}
	})
}
