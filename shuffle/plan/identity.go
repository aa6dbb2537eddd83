package plan

import (
	"crypto/sha256"
	"fmt"

	"rankfs/meta"
)

// identify names a plan's content: equal ids mean equal batches, whatever
// the dataset is called and whichever daemon asks. What does not change a
// batch's bytes is left out, so that its slabs are shared.
func identify(of Index, v meta.View, cut meta.Cut, kind string) (id [16]byte) {
	seed, epoch := v.Seed, v.Epoch
	if v.Order.Kind == meta.OrderNone {
		seed, epoch = 0, 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "rankfs plan 1%s\n%s\n%v %d %d\n%d %d %d %v %v\n",
		kind, of.Fingerprint(), v.Order, seed, epoch,
		cut.N, cut.Global, cut.Ranks, cut.Tail, v.ByChunk()))
	copy(id[:], sum[:])
	return id
}
