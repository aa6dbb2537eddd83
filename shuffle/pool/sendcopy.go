package pool

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/packing"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/turns"
)

// A copyRequest says of which attempt a copy is sent. Its table comes first.
type copyRequest struct {
	Stage, Generation uint64
	Commit            state.Commit
	Table             int64 // bytes of it
	Agreed            bool  // it is committed, and the cluster is to know of one more copy

	// So many bytes came before, by a tail of that nonce, and do not come again.
	Has   int64  `json:",omitempty"`
	Nonce uint64 `json:",omitempty"`

	packing.Pushed
}

// bytes are the bytes of what comes: its table, and what it has not of the map.
func (r copyRequest) bytes() int64 { return r.Table + r.Commit.Size - r.Has }

// A sent is a copy to send.
type sent struct {
	table  pieces.Table
	bytes  io.ReaderAt
	agreed bool   // it is committed
	ahead  *tail  // what went before; nil: nothing
	begins func() // is called when it begins to go; may be nil
}

// sendCopy gives a node a copy of an attempt: what it has not yet of it, if that is right.
func (p peers) sendCopy(ctx context.Context, node string, g state.PoolStage, c state.Commit, s sent) error {
	r := copyRequest{g.Number, g.Generation, c, int64(len(s.table)), s.agreed, min(s.ahead.has(node, g), c.Size), s.ahead.number(), packing.Pushed{Packed: g.Spec.Packed}}
	if r.Has > 0 {
		err := p.send(ctx, node, turns.PartyOf(g), r, s, io.NewSectionReader(s.bytes, r.Has, c.Size-r.Has))
		if !errors.Is(err, meta.ErrOvertaken) && !errors.Is(err, meta.ErrCorrupt) {
			return err
		}
	}
	r.Has, r.Nonce = 0, 0
	return p.send(ctx, node, turns.PartyOf(g), r, s, s.table.Check(io.NewSectionReader(s.bytes, 0, c.Size), 0))
}

func (p peers) send(ctx context.Context, node string, by turns.Party, r copyRequest, s sent, rest io.Reader) error {
	r.Plain = uint64(r.bytes())
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.push(ctx, node, by, wire.Request{Call: pushCopy, Body: body}, r.Pushed, func(ctx context.Context, emit func([]byte) error) error {
		if s.begins != nil {
			s.begins()
		}
		if err := emit(s.table); err != nil {
			return err
		}
		return wire.From(rest)(ctx, emit)
	})
}
