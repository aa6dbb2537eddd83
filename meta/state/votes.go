package state

import (
	"fmt"

	"rankfs/meta"
)

// MaxVoters bounds those that are noted in a command: five vote, and some more while that
// changes.
const MaxVoters = 64

// Voters are the nodes that have a vote when a command is put into the log, as the
// leader notes in those commands that may cost a vote. In what releases before
// version 4 have written there are none.
type Voters struct {
	Voters []string `json:",omitempty"`
}

// A Ballot is a command that voters matter to.
type Ballot interface {
	Command
	// Vote enters the voters. The leader does, and overwrites what the sender entered.
	Vote(voters []string)
}

// A Leave is a command by which a node is to go: with its vote, if it has one.
type Leave interface {
	Ballot

	// Leaver is the node that goes.
	Leaver() string

	voters() []string
}

// Vote implements Ballot.
func (v *Voters) Vote(voters []string) { v.Voters = voters }

func (v *Voters) voters() []string { return v.Voters }

func (v *Voters) check() error {
	if len(v.Voters) > MaxVoters {
		return fmt.Errorf("list of %d voters %w: the most are %d", len(v.Voters), meta.ErrInvalid, MaxVoters)
	}
	for _, id := range v.Voters {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

// since is the version of a command that has them.
func (v *Voters) since() int { return signedIf(len(v.Voters) > 0) }

// NotesVoters reports whether the commands that the machine takes have voters in
// them.
func (m *Machine) NotesVoters() bool { return m.Version() >= Signed }
