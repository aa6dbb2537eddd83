package admin

import (
	"cmp"

	"rankfs/meta/state"
)

// rights knows which commands this node may send.
type rights struct {
	self  string // the id of this node
	state interface {
		Denies(node string, c state.Command) error
	}
}

// orDenied is err, which says that what a command is about is not there, or before that why
// this node may not send such a command at all.
func (r rights) orDenied(c state.Command, err error) error {
	return cmp.Or(r.state.Denies(r.self, c), err)
}
