package mapfiles

import (
	"rankfs/meta/state"
	"rankfs/shuffle/openmaps"
	"rankfs/shuffle/pieces"
)

// A Loan is pieces that are used where they are in memory, until they are given back.
type Loan struct {
	of   *Reader
	open []*openmaps.Map
}

// MaxLent bounds the pieces of a loan: of more, each would be opened for it and closed.
const MaxLent = openmaps.MaxOpened

// Lend begins a loan.
func (f *Reader) Lend() *Loan { return &Loan{of: f} }

// Piece is a piece that was measured, where it is in memory; nil if it is to be read, which says
// what is wrong with it.
func (l *Loan) Piece(of Part, c state.Commit, is pieces.Piece) []byte {
	one, err := l.of.findAgain(of, c, is)
	if err != nil {
		return nil
	}
	if b := one.InMemory(); b != nil && l.of.open.Keeps(one.Map) {
		l.open = append(l.open, one.Map)
		return b
	}
	l.of.open.Give(one.Map)
	return nil
}

// Give gives all of them back.
func (l *Loan) Give() {
	for _, m := range l.open {
		l.of.open.Give(m)
	}
}
