package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"rankfs/meta"
)

// A Command is one change of the machine: a pointer to one of the structs that the
// sections, and the machine itself (sections.go), have as commands. One that has more to say
// has, as well, what of these it wants:
//   - about, the node that it is about, which may send it;
//   - denies, why a node may not send it, beside its role;
//   - since, the version in which it can be said first for what it has;
//   - comesTo, whether a result has what its sender reads of it.
type Command interface {
	entry() *Entry
	check() error // what is wrong with it whatever the state

	// apply changes nothing if it returns an error, but for what was dropped
	// in the attempt to make room.
	apply(*state) (Result, error)
}

// An Entry is the note of the leader on a command that it puts into the log:
// when that was and, from version 4 on, which node has sent it.
type Entry struct {
	At    int64  `json:",omitempty"`
	By    string `json:",omitempty"` // a node
	Leads bool   `json:",omitempty"` // which leads, and does what is the leader's to do

	// version is that in which the command is said, the first byte of its form in the log;
	// zero in one that was not signed, which is of version Oldest.
	version int
}

// A Sender of a command is a node, for itself or, if it leads, as the leader of the
// cluster.
type Sender struct {
	Node  string
	Leads bool
}

// Stamp says what the clock of the leader shows, in nanoseconds since 1970. The leader stamps
// every command that it puts into the log.
func Stamp(c Command, at int64) { c.entry().At = at }

// Sign enters the version in which a command is said and, from version 4 on, its sender. The
// leader signs every command, and overwrites what its sender entered.
func Sign(c Command, by Sender, version int) {
	if version < Signed {
		by = Sender{}
	}
	e := c.entry()
	e.By, e.Leads, e.version = by.Node, by.Leads, version
}

func (e *Entry) entry() *Entry { return e }

// A Result is what came of a command: nothing, or a struct that the section has for that, of
// which Result has a method in the section's file. A node that asked the leader is sent it as
// JSON, and reads of it what its command names.
type Result struct{ is any }

// MarshalJSON implements json.Marshaler.
func (r Result) MarshalJSON() ([]byte, error) {
	if r.is == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(r.is)
}

// UnmarshalJSON implements json.Unmarshaler. Which section it is of shows when it is read.
func (r *Result) UnmarshalJSON(text []byte) error {
	r.is = json.RawMessage(bytes.Clone(text))
	return nil
}

// Check says why a result that was sent cannot be what a command came to, if so.
func (r Result) Check(c Command) error {
	if of, is := c.(interface{ comesTo(Result) bool }); is && !of.comesTo(r) {
		return fmt.Errorf("result of a command %w: it lacks what the command comes to", meta.ErrCorrupt)
	}
	return nil
}

// came is a result as the section has it that T is of; zero if it is none of that.
func came[T any](r Result) T {
	switch is := r.is.(type) {
	case T:
		return is
	case json.RawMessage:
		var sent T
		if json.Unmarshal(is, &sent) == nil {
			return sent
		}
	}
	return *new(T)
}

// versionSaid is the version that the leader spoke when it noted a command.
func versionSaid(c Command) int { return max(c.entry().version, Oldest) }

// versionNeeded is the version in which what a command has can be said first.
func versionNeeded(c Command) int {
	needs := signedIf(c.entry().By != "" || c.entry().Leads)
	if newer, is := c.(interface{ since() int }); is {
		return max(needs, newer.since())
	}
	return needs
}
