package assign

import "rankfs/meta/lists"

// Sets is a table of the sets of nodes that hold a position. The zero value is empty.
// Sets may be equal, may be empty, and name a node twice; that and the order
// within a set make no difference to any result.
type Sets struct{ lists.Table }

func filled(n int, with int32) []int32 {
	return fill(make([]int32, n), with)
}

func fill(s []int32, with int32) []int32 {
	for i := range s {
		s[i] = with
	}
	return s
}
