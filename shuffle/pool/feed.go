package pool

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
	return fmt.Sprintf("part %d of map %d %v: it has other bytes than were committed", b.of.Number, b.of.at(b.i).Map, meta.ErrCorrupt)
}

func (b *badPiece) Unwrap() error { return meta.ErrCorrupt }

// find has its nodes look at their copies. One that does not give it up is asked no more.
func (b *badPiece) find(ctx context.Context, failed *failures) {
	for _, node := range b.nodes {
		err := b.look(ctx, node)
		if !b.of.gaveUp(ctx, node, []int{b.i}) {
			failed.add(demand{node: node}, errors.Join(b, err))
		}
	}
}

// portion has the node of a demand write some bytes of the piece into dst.
func (s stretch) portion(ctx context.Context, from demand, off int64, dst []byte) error {
	r, p := s.of.request(from.maps, from.hurry), s.of.pool
	if s.of.own(from.node) {
		return p.copies.readPortion(ctx, s.of.files, r, s.of.pieces[s.i], off, dst)
	}
	return p.peers.fetchPortion(ctx, from.node, r, off, dst)
}

// look has a node look whether its copy of a piece is right.
func (s stretch) look(ctx context.Context, node string) error {
	r, p := s.of.request([]int{s.i}, false), s.of.pool
	if s.of.own(node) {
		return p.copies.look(ctx, s.of.files, r)
	}
	return p.peers.lookAt(ctx, node, r)
}

// A feed brings bytes of pieces of a part.
type feed struct {
	ctx    context.Context
	merger *merger
	failed *failures
}

// bring writes bytes of a piece into dst, and says which node they came of.
func (f feed) bring(s stretch, off int64, dst []byte) (node string, err error) {
	for {
		from, err := s.of.from([]int{s.i}, f.failed)
		if err != nil {
			return "", err
		}
		err = s.portion(f.ctx, from[0], off, dst)
		switch {
		case err == nil, f.ctx.Err() != nil:
			return from[0].node, err
		case !errors.Is(err, meta.ErrCorrupt) || !s.of.gaveUp(f.ctx, from[0].node, from[0].maps):
			f.failed.add(from[0], err)
		}
	}
}
