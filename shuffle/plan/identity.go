package plan

import (
	"crypto/sha256"
	"fmt"

	"rankfs/meta"
)

// identify names the plan's content: equal ids mean equal batches, whatever
// the dataset is called and whichever daemon asks. What does not change a
// batch's bytes is left out, so that its slabs are shared.
func (p *Plan) identify(kind string) (id [16]byte) {
	seed, epoch := p.view.Seed, p.view.Epoch
	if p.view.Order.Kind == meta.OrderNone {
		seed, epoch = 0, 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "rankfs plan 1%s\n%s\n%v %d %d\n%d %d %d %v %v\n",
		kind, p.version.index.Fingerprint(), p.view.Order, seed, epoch,
		p.cut.N, p.cut.Global, p.cut.Ranks, p.cut.Tail, p.byChunk()))
	copy(id[:], sum[:])
	return id
}

// byChunk reports whether positions of the order are chunks; else they are records.
func (p *Plan) byChunk() bool { return p.view.ByChunk() }
