package merging

import (
	"context"
	"errors"
	"fmt"

	"rankfs/meta"
)

// A badPiece is a piece that has other bytes than were committed. It came of these nodes.
type badPiece struct {
	stretch
	nodes []string
}

func (b *badPiece) Error() string {
	return fmt.Sprintf("part %d of map %d %v: it has other bytes than were committed", b.of.Is().Number, b.of.Is().Map(b.i), meta.ErrCorrupt)
}

func (b *badPiece) Unwrap() error { return meta.ErrCorrupt }

// find has its nodes look at their copies. If one gives its copy up, that may be all that was
// wrong, and the others are asked again; else none of them is asked any more.
func (b *badPiece) find(ctx context.Context, failed *Failures) {
	errs, gave := make([]error, len(b.nodes)), false
	for i, node := range b.nodes {
		errs[i] = b.of.Look(ctx, b.i, node)
		gave = b.of.GaveUp(ctx, b.i, node) || gave
	}
	for i, node := range b.nodes {
		if !gave {
			failed.Add(node, errors.Join(b, errs[i]))
		}
	}
}
