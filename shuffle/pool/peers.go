package pool

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/packing"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/turns"
)

// The calls of other nodes, by numbers that never change their meaning.
const (
	callMeasure = 16 // how long the pieces of some maps of a part are, and their sums
	callPieces  = 17 // the pieces; of a whole map its table first
	pushCopy    = 18 // a copy of an attempt that is being committed
	callWeigh   = 19 // what some maps have of each part, added up
	pushTail    = 20 // what is written of an attempt that is not committed yet
	callPortion = 21 // some bytes of a piece, unchecked; or if it is none, a look at all of it
)

// The peers are the other nodes, as this one asks them.
type peers struct {
	*agreed
	pulls, pushes *turns.Exchanges
	packing       *packing.Presses
}

func newPeers(a *agreed) peers {
	return peers{a, turns.NewExchanges(), turns.NewExchanges(), packing.New()}
}

// A PieceRequest asks a node for what maps have of a part; or, if Whole, for all of one.
type PieceRequest struct {
	terms
	Part  uint64
	Whole bool
	Maps  []state.Commit
	hurry bool // others can be asked
}

// of is what is wanted of each of the maps.
func (r PieceRequest) of() mapfiles.Part {
	return mapfiles.Part{Stage: r.Stage, Number: r.Part, Whole: r.Whole}
}

// Terms are the terms on which pieces of a stage come: as of which generation, how they are packed
// on the way, and what the work counts for.
type terms struct {
	Stage, Generation uint64
	Packed            meta.Compression
	by                turns.Party
}

func termsOf(is state.PoolStage) terms {
	return terms{is.Number, is.Generation, is.Spec.Packed, turns.PartyOf(is)}
}

// hurryTime is how long a node may say nothing to a request that is in a hurry. If it works on
// it, it says so more often.
const hurryTime = 4 * time.Second

// call is the request for so many bytes by a call of that number.
func (r PieceRequest) call(number uint8, bytes int) wire.Request {
	q := wire.Request{Call: number, ID: r.id(), Runs: r.runs(), Bytes: uint64(bytes)}
	if r.hurry {
		q.Quiet = hurryTime
	}
	return q
}

// id is the request without its maps.
func (r PieceRequest) id() (id [32]byte) {
	binary.LittleEndian.PutUint64(id[0:], r.Stage)
	binary.LittleEndian.PutUint64(id[8:], r.Generation)
	binary.LittleEndian.PutUint64(id[16:], r.Part)
	id[24] = byte(r.Packed) << 1
	if r.Whole {
		id[24] |= 1
	}
	return id
}

// runs are the numbers of the maps.
func (r PieceRequest) runs() (all []wire.Run) {
	for _, c := range r.Maps {
		if n := len(all); n > 0 && all[n-1].First+all[n-1].N == c.Map {
			all[n-1].N++
			continue
		}
		all = append(all, wire.Run{First: c.Map, N: 1})
	}
	return all
}

// pieceBytes are the bytes that describe a piece: its length and its sum.
const pieceBytes = 16

// measureAt asks a node what the pieces of maps are.
func (p peers) measureAt(ctx context.Context, node string, r PieceRequest) ([]pieces.Piece, error) {
	b := make([]byte, pieceBytes*len(r.Maps))
	q := r.call(callMeasure, len(b))
	if err := p.pull(ctx, node, r.by, q, meta.Uncompressed, b); err != nil {
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
func (p peers) fetch(ctx context.Context, node string, r PieceRequest, pieces []pieces.Piece, dst []byte) error {
	if r.Whole {
		return p.fetchWhole(ctx, node, r, dst)
	}
	if len(dst) == 0 {
		return nil
	}
	q := r.call(callPieces, len(dst))
	if err := p.pull(ctx, node, r.by, q, r.Packed, dst); err != nil {
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
func (p peers) lookAt(ctx context.Context, node string, r PieceRequest) error {
	return p.pull(ctx, node, r.by, r.call(callPortion, 0), meta.Uncompressed)
}

// fetchPortion has a node write some bytes of a piece into dst, which are not checked.
func (p peers) fetchPortion(ctx context.Context, node string, r PieceRequest, off int64, dst []byte) error {
	q := r.call(callPortion, len(dst))
	binary.LittleEndian.PutUint64(q.ID[24:], uint64(off)<<8|uint64(q.ID[24])) // behind Packed
	return p.pull(ctx, node, r.by, q, r.Packed, dst)
}

// offOf is where the bytes begin that a request wants of a piece.
func offOf(id [32]byte) int64 { return int64(binary.LittleEndian.Uint64(id[24:]) >> 8) }

// fetchWhole has a node write a map into dst.
func (p peers) fetchWhole(ctx context.Context, node string, r PieceRequest, dst []byte) error {
	_, g, err := p.numbered(ctx, r.Stage)
	if err != nil {
		return err
	}
	t := make(pieces.Table, pieces.RowBytes*g.Spec.Pieces())
	q := r.call(callPieces, len(t)+len(dst))
	if err := p.pull(ctx, node, r.by, q, r.Packed, t, dst); err != nil {
		return err
	}
	if c := r.Maps[0]; !t.Is(c.Sum, c.Size) || !t.Match(dst, 0) {
		return fmt.Errorf("what came of map %d %w: it has other bytes than were committed", c.Map, meta.ErrCorrupt)
	}
	return nil
}

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

// weighAt has another node do that.
func (p peers) weighAt(ctx context.Context, node string, r PieceRequest, parts []int64) error {
	b := make([]byte, 8*len(parts))
	q := r.call(callWeigh, len(b))
	if err := p.pull(ctx, node, r.by, q, meta.Uncompressed, b); err != nil {
		return err
	}
	for i := range parts {
		parts[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
