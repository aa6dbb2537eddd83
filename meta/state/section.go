package state

import (
	"cmp"
	"slices"
)

// A section is one kind of thing that the nodes agree on, with what follows from
// it. Its commands change it, and may change others. One that is timed has advance
// as well, which is called whenever the clock has been set.
type section interface {
	commands() []command
	share() section // a copy that stays what it is, and to which nothing is applied
	over() bool     // there is more than its bounds allow
	write(*frameWriter)
	restore(*restorer) frames // what reads its frames into the state
}

// sectionOf is the section of that type.
func sectionOf[S section](s *state) S {
	for _, p := range s.sections {
		if is, ok := p.(S); ok {
			return is
		}
	}
	panic("state: a section that is not in the table")
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
