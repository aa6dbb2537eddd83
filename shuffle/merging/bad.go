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

// find has its nodes look at their copies. One that does not give it up is asked no more.
func (b *badPiece) find(ctx context.Context, failed *Failures) {
	for _, node := range b.nodes {
		err := b.of.Look(ctx, b.i, node)
		if !b.of.GaveUp(ctx, b.i, node) {
			failed.Add(node, errors.Join(b, err))
		}
	}
}
