package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"rankfs/meta"
)

// A Command is one change of the machine: a pointer to one of the structs
// below, which have no others beside them.
type Command interface {
	// Stamp says what the clock of the leader shows, in nanoseconds since
	// 1970. The leader stamps every command that it puts into the log.
	Stamp(at int64)
	// Sign enters the sender of the command. From version 4 on the leader signs every
	// command, and overwrites what its sender entered.
	Sign(Sender)

	at() int64
	sender() Sender
	version() int // in which it can be said first
	check() error // what is wrong with it whatever the state

	// apply changes nothing if it returns an error, but for what was dropped
	// in the attempt to make room.
	apply(*state) (Result, error)
}

// An Entry is what the leader notes of a command that it puts into the log:
// when that was and, from version 4 on, which node has sent it.
type Entry struct {
	At    int64  `json:",omitempty"`
	By    string `json:",omitempty"` // a node
	Leads bool   `json:",omitempty"` // which leads, and does what is the leader's to do
}

// A Sender of a command is a node, for itself or, if it leads, as the leader of the
// cluster.
type Sender struct {
	Node  string
	Leads bool
}

// Stamp implements Command.
func (e *Entry) Stamp(at int64) { e.At = at }

// Sign implements Command.
func (e *Entry) Sign(by Sender) { e.By, e.Leads = by.Node, by.Leads }

func (e *Entry) at() int64 { return e.At }

func (e *Entry) sender() Sender { return Sender{e.By, e.Leads} }

func (e *Entry) version() int {
	if e.By != "" || e.Leads {
		return Signed
	}
	return Oldest
}

// A Result is what a command came to. Of its fields those are set that the
// kind of command names.
type Result struct {
	Node       *Node    `json:",omitempty"` // Admit: the node as it is entered now
	Generation uint64   `json:",omitempty"` // PutDataset: of the dataset now
	Before     string   `json:",omitempty"` // Claim: the node that held the rank before; empty if none did
	Plan       *Plan    `json:",omitempty"` // Pin: the plan that is pinned now
	Queue      *Queue   `json:",omitempty"` // OpenQueue, ResetQueue: the queue as it is now
	Step       *Stepped `json:",omitempty"` // Step
}

// Encode is the form of a command in the log: its version, its kind, and JSON.
// It refuses what no machine would accept.
func Encode(c Command) ([]byte, error) {
	version, err := versionOf(c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write([]byte{byte(version), byte(known.of(c).kind)})
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("encode command: %w: %w", meta.ErrInvalid, err)
	}
	if b.Len() > MaxCommand {
		return nil, fmt.Errorf("command of %d bytes %w: the most is %d", b.Len(), meta.ErrInvalid, MaxCommand)
	}
	return b.Bytes(), nil
}

// Decode reads a command. A leader decodes the commands of other nodes before they go
// into the log: one that cannot be decoded there would stop every machine.
func Decode(data []byte) (Command, error) { return decodeUpTo(Version, data) }

func decodeUpTo(newest int, data []byte) (Command, error) {
	if len(data) < 2 || len(data) > MaxCommand {
		return nil, fmt.Errorf("command of %d bytes %w", len(data), meta.ErrCorrupt)
	}
	version, k := int(data[0]), known.kinds[kind(data[1])]
	if err := canRead(version, Oldest, newest); err != nil {
		return nil, fmt.Errorf("command %w", err)
	}
	if k.blank == nil {
		return nil, meta.Worded(meta.ErrUnavailable, "command of kind %d is not known to this release: %s", data[1], upgrade)
	}
	c, d := k.blank(), json.NewDecoder(bytes.NewReader(data[2:]))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, meta.Worded(meta.ErrCorrupt, "command of kind %d is corrupt or of a later release: upgrade rankfs on this node: %w",
			data[1], err)
	}
	if rest := data[2+d.InputOffset():]; len(bytes.TrimSpace(rest)) != 0 {
		return nil, fmt.Errorf("command of kind %d %w: %d bytes follow it", data[1], meta.ErrCorrupt, len(rest))
	}
	if says, err := versionOf(c); err != nil || says != version {
		return nil, fmt.Errorf("command of kind %d %w: it is not of version %d", data[1], meta.ErrCorrupt, version)
	}
	return c, nil
}
