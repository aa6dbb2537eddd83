package state

import (
	"cmp"
	"slices"
)

// A section is one kind of thing that the nodes agree on, with what follows from
// it. Its commands change it, and may change others.
type section interface {
	sharer
	commands() []command
	over() bool // there is more than its bounds allow
	write(*frameWriter)
	restore(*restorer) frames // what reads its frames into the state
}

// A command is one kind of command.
type command struct {
	kind  kind
	blank func() Command
	by    right // to send it
	since int   // the version in which it can be said first, if not Oldest
}

// A kind is the second byte of an encoded command. Numbers are never used for
// anything else again.
type kind byte

func blank[C any, P interface {
	*C
	Command
}]() Command {
	return P(new(C))
}

// since is the version in which a section can have something first.
func since(s section) int {
	return slices.MinFunc(s.commands(), func(a, b command) int { return cmp.Compare(a.since, b.since) }).since
}
