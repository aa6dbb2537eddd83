package state

import (
	"reflect"
	"slices"
)

// sections are all, in the order of a snapshot: what refers to something comes
// after it. A new kind of agreed thing is a file and a line of this table.
//
// Each node has all of them in memory, and a node that joins is sent them, so the sum of
// their bounds matters: a cluster that reaches every one at once takes about a gigabyte.
var sections = agreed{
	fresh[tokens],
	fresh[nodes],
	fresh[datasets],
	fresh[claims],
	fresh[plans],
	fresh[queues],
	fresh[settings],
	fresh[pool],
}

// known follows from the table.
var known = sections.index()

type agreed []func() section

func fresh[S any, P interface {
	*S
	section
}]() section {
	return P(new(S))
}

// own are the commands of the machine itself, about what is in the header.
var own = []command{
	{kind: 1, blank: blank[Found], by: leaders},
	{kind: 21, blank: blank[Upgrade], by: leaders},
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

func (x index) of(c Command) command { return x.types[reflect.TypeOf(c)] }

// Speaking is New for a machine that understands no newer version than that: one
// of an older release.
func Speaking(version int) *Machine {
	m := &Machine{speaks: version}
	m.mu.state = newState()
	return m
}

func newState() *state {
	s := new(state)
	for _, fresh := range known.sections {
		s.sections = append(s.sections, fresh())
	}
	return s
}
