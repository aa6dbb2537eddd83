package pool

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/pieces"
)

// measureAt asks a node what the pieces of maps are.
func (p peers) measureAt(ctx context.Context, node string, r gathering.Request) ([]pieces.Piece, error) {
	b := make([]byte, pieceBytes*len(r.Maps))
	q := call(callMeasure, r, len(b))
	if err := p.pull(ctx, node, r.Party, q, meta.Uncompressed, b); err != nil {
		return nil, err
	}
	all := make([]pieces.Piece, len(r.Maps))
	for i, c := range r.Maps {
		one := b[pieceBytes*i:]
		all[i] = pieces.Piece{Size: int64(binary.LittleEndian.Uint64(one)), Sum: binary.LittleEndian.Uint64(one[8:]), Begin: -1}
		if all[i].Size < 0 || all[i].Size > c.Size {
			return nil, fmt.Errorf("length of a piece of map %d %w", c.Map, meta.ErrCorrupt)
		}
	}
	return all, nil
}

// fetch has a node write pieces of maps, one after the other, into dst.
func (p peers) fetch(ctx context.Context, node string, r gathering.Request, pieces []pieces.Piece, dst []byte) error {
	if r.Whole {
		return p.fetchWhole(ctx, node, r, dst)
	}
	if len(dst) == 0 {
		return nil
	}
	q := call(callPieces, r, len(dst))
	if err := p.pull(ctx, node, r.Party, q, r.Packed, dst); err != nil {
		return err
	}
	for i, one := range pieces {
		if xxhash.Sum64(dst[:one.Size]) != one.Sum {
			return fmt.Errorf("what came of part %d of map %d %w: it has other bytes than were committed", r.Part, r.Maps[i].Map, meta.ErrCorrupt)
		}
		dst = dst[one.Size:]
	}
	return nil
}

// lookAt has a node look whether its copy of a piece, or of a whole map, is right.
func (p peers) lookAt(ctx context.Context, node string, r gathering.Request) error {
	return p.pull(ctx, node, r.Party, call(callPortion, r, 0), meta.Uncompressed)
}

// fetchPortion has a node write some bytes of a piece into dst, which are not checked.
func (p peers) fetchPortion(ctx context.Context, node string, r gathering.Request, off int64, dst []byte) error {
	q := call(callPortion, r, len(dst))
	binary.LittleEndian.PutUint64(q.ID[24:], uint64(off)<<8|uint64(q.ID[24])) // behind Packed
	return p.pull(ctx, node, r.Party, q, r.Packed, dst)
}

// fetchWhole has a node write a map into dst.
func (p peers) fetchWhole(ctx context.Context, node string, r gathering.Request, dst []byte) error {
	_, g, err := p.numbered(ctx, r.Stage)
	if err != nil {
		return err
	}
	t := make(pieces.Table, pieces.RowBytes*g.Spec.Pieces())
	q := call(callPieces, r, len(t)+len(dst))
	if err := p.pull(ctx, node, r.Party, q, r.Packed, t, dst); err != nil {
		return err
	}
	if c := r.Maps[0]; !t.Is(c.Sum, c.Size) || !t.Match(dst, 0) {
		return fmt.Errorf("what came of map %d %w: it has other bytes than were committed", c.Map, meta.ErrCorrupt)
	}
	return nil
}

// weighAt has another node say how many bytes of maps each part has.
func (p peers) weighAt(ctx context.Context, node string, r gathering.Request, parts []int64) error {
	b := make([]byte, 8*len(parts))
	q := call(callWeigh, r, len(b))
	if err := p.pull(ctx, node, r.Party, q, meta.Uncompressed, b); err != nil {
		return err
	}
	for i := range parts {
		parts[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
