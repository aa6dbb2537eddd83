package order

import (
	"fmt"

	"rankfs/meta"
)

// An Order is a permutation of [0,n): the records of one epoch. It is a
// comparable value and safe for concurrent use.
type Order struct {
	kind     meta.OrderKind
	n        uint64
	key      key
	full     permutation
	windowed windowed
}

// New returns the order of n records, at most 1<<63, for one epoch. A window
// that holds all n is a full order.
func New(o meta.Order, n, seed, epoch uint64) Order {
	k := keyOf(seed, epoch)
	switch {
	case o.Kind == meta.OrderNone || n == 0:
		return Order{kind: meta.OrderNone, n: n}
	case o.Kind == meta.OrderFull || o.Window >= n:
		return Order{kind: meta.OrderFull, n: n, full: newPermutation(n), key: k.of(labelFull)}
	}
	return Order{kind: meta.OrderWindow, n: n, windowed: newWindowed(n, o.Window, k)}
}

// At returns the record at a position, which must be below n.
func (o Order) At(position uint64) uint64 {
	o.check(position)
	switch o.kind {
	case meta.OrderFull:
		return o.full.at(o.key, position)
	case meta.OrderWindow:
		return o.windowed.at(position)
	}
	return position
}

// Position is the inverse of At: where in the epoch a record stands.
func (o Order) Position(record uint64) uint64 {
	o.check(record)
	switch o.kind {
	case meta.OrderFull:
		return o.full.position(o.key, record)
	case meta.OrderWindow:
		return o.windowed.position(record)
	}
	return record
}

func (o Order) check(i uint64) {
	if i >= o.n {
		panic(fmt.Sprintf("order: %d is not below %d", i, o.n))
	}
}
