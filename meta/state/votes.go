package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// Voters are the nodes that have a vote when a command is put into the log, as the
// leader notes in those commands that may cost a vote. In what releases before
// version 4 have written there are none.
type Voters struct {
	Voters []string `json:",omitempty"`
}

// A Leave is a command by which a node is to go: with its vote, if it has one.
type Leave interface {
	Command
	// Vote enters the voters. The leader does, and overwrites what the sender entered.
	Vote(voters []string)

	leaves() string
	voters() []string
}

// Vote implements Leave.
func (v *Voters) Vote(voters []string) { v.Voters = voters }

func (v *Voters) voters() []string { return v.Voters }

func (v *Voters) check() error {
	if len(v.Voters) > MaxVoters {
		return fmt.Errorf("%d voters %w: the most are %d", len(v.Voters), meta.ErrInvalid, MaxVoters)
	}
	for _, id := range v.Voters {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

// since is the version of a command that has them.
func (v *Voters) since(version int) int {
	if len(v.Voters) > 0 {
		return max(version, Signed)
	}
	return version
}

// letsGo says why the cluster cannot do without the vote of a node: those of the
// other nodes that are up would be no majority. It counts the votes of removed nodes,
// too, as a node may be gone before its vote is.
func (s *state) letsGo(c Leave) error {
	id, voters := c.leaves(), c.voters()
	n, ok := s.nodes().get(id)
	if d, is := c.(*Drain); is && (n.Drained || !d.Drained) {
		return nil
	}
	if !ok || !slices.Contains(voters, id) {
		return nil
	}
	up, left := 0, 0
	for _, v := range voters {
		switch n, ok := s.nodes().get(v); {
		case !ok:
			left++
		case v != id && n.Up:
			up++
		}
	}
	switch {
	case len(voters) == 1:
		return fmt.Errorf("node %s %w: it has the only vote, and nobody could lead without it; have others join first, so that three vote", id, meta.ErrBusy)
	case 2*up <= len(voters) && 2*(up+left) > len(voters):
		return fmt.Errorf("node %s %w: a node that was removed is a voter still, as the votes change one by one; try again in a moment", id, meta.ErrBusy)
	case 2*up <= len(voters) && up == len(voters)-1 && s.couldVote(voters):
		return fmt.Errorf("node %s %w: only %d nodes vote as long as another is being given a vote; try again in a moment", id, meta.ErrBusy, len(voters))
	case 2*up <= len(voters) && up == len(voters)-1:
		return fmt.Errorf("node %s %w: only %d nodes vote, and without it the other would be no majority; have another join first, so that three vote",
			id, meta.ErrBusy, len(voters))
	case 2*up <= len(voters):
		return fmt.Errorf("node %s %w: of %d voters only %d others are up, which is no majority; start those that are down, or remove them first; see: rankfs node ls",
			id, meta.ErrBusy, len(voters), up)
	}
	return nil
}

// couldVote reports whether a node that is up and stays has no vote yet.
func (s *state) couldVote(voters []string) bool {
	for id, n := range s.nodes().m {
		if n.Up && !n.Drained && !slices.Contains(voters, id) {
			return true
		}
	}
	return false
}

// LetsGo says why a node cannot go, as far as this machine knows. The machines
// that apply it decide.
func (m *Machine) LetsGo(c Leave) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.state.letsGo(c)
}

// NotesVoters reports whether the commands that the machine takes have voters in
// them.
func (m *Machine) NotesVoters() bool { return m.Version() >= Signed }
