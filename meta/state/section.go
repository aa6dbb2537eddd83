package state

import (
	"cmp"
	"maps"
	"reflect"
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

// sections are all, in the order of a snapshot: what refers to something comes
// after it. A new kind of agreed thing is a file and a line of this table.
var sections = agreed{
	fresh[tokens],
	fresh[nodes],
	fresh[datasets],
	fresh[jobs],
	fresh[plans],
	fresh[queues],
	fresh[settings],
}

// known is what follows from the table.
var known = sections.index()

type agreed []func() section

func fresh[S any, P interface {
	*S
	section
}]() section {
	return P(new(S))
}

func newState() *state {
	s := new(state)
	for _, fresh := range known.sections {
		s.parts = append(s.parts, fresh())
	}
	return s
}

// part is the section of that type.
func part[S section](s *state) S {
	for _, p := range s.parts {
		if is, ok := p.(S); ok {
			return is
		}
	}
	panic("state: a section that is not in the table")
}

// A command is one kind of them.
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

// An index finds a command by its number and by its type.
type index struct {
	sections agreed
	kinds    map[kind]command
	types    map[reflect.Type]command
}

func (a agreed) index() index {
	x := index{a, make(map[kind]command), make(map[reflect.Type]command)}
	all := slices.Clone(own)
	for _, fresh := range a {
		all = append(all, fresh().commands()...)
	}
	for _, c := range all {
		if _, twice := x.kinds[c.kind]; twice {
			panic("state: two commands of one kind")
		}
		x.kinds[c.kind] = c
		x.types[reflect.TypeOf(c.blank())] = c
	}
	return x
}

// since is the version in which a section can have something first.
func since(s section) int {
	return slices.MinFunc(s.commands(), func(a, b command) int { return cmp.Compare(a.since, b.since) }).since
}

func (x index) of(c Command) command { return x.types[reflect.TypeOf(c)] }

// Kinds has an empty command of each kind, for tests of all.
func Kinds() (all []Command) {
	for _, k := range slices.SortedFunc(maps.Values(known.kinds), func(a, b command) int { return cmp.Compare(a.kind, b.kind) }) {
		all = append(all, k.blank())
	}
	return all
}
