package pool

import (
	"encoding/binary"
	"time"

	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/gathering"
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

// hurryTime is how long a node may say nothing to a request that is in a hurry. If it works on
// it, it says so more often.
const hurryTime = 4 * time.Second

// call is a request for pieces, of so many bytes, by a call of that number.
func call(number uint8, r gathering.Request, bytes int) wire.Request {
	q := wire.Request{Call: number, ID: idOf(r), Runs: runsOf(r.Maps), Bytes: uint64(bytes)}
	if r.Hurry {
		q.Quiet = hurryTime
	}
	return q
}

// idOf is a request without its maps.
func idOf(r gathering.Request) (id [32]byte) {
	binary.LittleEndian.PutUint64(id[0:], r.Stage)
	binary.LittleEndian.PutUint64(id[8:], r.Generation)
	binary.LittleEndian.PutUint64(id[16:], r.Part)
	id[24] = byte(r.Packed) << 1
	if r.Whole {
		id[24] |= 1
	}
	return id
}

// runsOf are the numbers of maps.
func runsOf(maps []state.Commit) (all []wire.Run) {
	for _, c := range maps {
		if n := len(all); n > 0 && all[n-1].First+all[n-1].N == c.Map {
			all[n-1].N++
			continue
		}
		all = append(all, wire.Run{First: c.Map, N: 1})
	}
	return all
}

// offOf is where the bytes begin that a request wants of a piece.
func offOf(id [32]byte) int64 { return int64(binary.LittleEndian.Uint64(id[24:]) >> 8) }

// pieceBytes are the bytes that describe a piece: its length and its sum.
const pieceBytes = 16
