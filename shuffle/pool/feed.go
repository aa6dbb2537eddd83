package pool

import (
	"context"
	"errors"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/merging"
)

// A feeder is a column as package merging knows it.
type feeder struct{ *column }

// Lend implements merging.Column.
func (p feeder) Lend() (here [][]byte, give func()) {
	here = make([][]byte, len(p.Each))
	if len(here) > mapfiles.MostLent || p.files == nil {
		return here, func() {}
	}
	loan := p.files.maps.Lend()
	for i := range here {
		if c := p.at(i); slices.ContainsFunc(c.Nodes, p.own) {
			here[i] = loan.Piece(p.of(), c, p.Each[i])
		}
	}
	return here, loan.Give
}

// Gather implements merging.Column.
func (p feeder) Gather(ctx context.Context, some []int, dst []byte) error {
	return p.gather(ctx, some, dst)
}

// Bring implements merging.Feed.
func (p feeder) Bring(ctx context.Context, i int, off int64, dst []byte, failed *merging.Failures) (node string, err error) {
	for {
		from, err := p.from([]int{i}, failed)
		if err != nil {
			return "", err
		}
		err = p.portion(ctx, from[0], i, off, dst)
		switch {
		case err == nil, ctx.Err() != nil:
			return from[0].node, err
		case !errors.Is(err, meta.ErrCorrupt) || !p.gaveUp(ctx, from[0].node, from[0].maps):
			p.failed(failed, from[0], err)
		}
	}
}

// portion has the node of a demand write some bytes of a piece into dst.
func (p feeder) portion(ctx context.Context, from demand, i int, off int64, dst []byte) error {
	r := p.request(from.maps, from.hurry)
	if p.own(from.node) {
		return p.all.copies.readPortion(ctx, p.files, r, p.Each[i], off, dst)
	}
	return p.all.peers.fetchPortion(ctx, from.node, r, off, dst)
}

// Look implements merging.Feed.
func (p feeder) Look(ctx context.Context, i int, node string) error {
	r := p.request([]int{i}, false)
	if p.own(node) {
		return p.all.copies.look(ctx, p.files, r)
	}
	return p.all.peers.lookAt(ctx, node, r)
}

// GaveUp implements merging.Feed.
func (p feeder) GaveUp(ctx context.Context, i int, node string) bool {
	return p.gaveUp(ctx, node, []int{i})
}

// slice is a column that has one of the pieces of some maps of the stage, and is measured.
func (p *column) slice(ctx context.Context, piece uint64, maps state.Maps) (merging.Column, error) {
	one := &column{terms: p.terms, Pieces: merging.Pieces{Number: piece, Maps: maps}, all: p.all, files: p.files}
	return feeder{one}, one.measurePieces(ctx)
}
