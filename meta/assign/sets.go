package assign

import "rankfs/meta/lists"

// Sets is a table of sets of nodes: who holds what. The zero value is empty.
// Sets may be equal, may be empty, and name a node twice; that and the order
// within a set make no difference to any result.
type Sets struct{ lists.Table }
