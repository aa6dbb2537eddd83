package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"rankfs/meta/state"
)

// A configuration is Raft's: to which nodes it sends the log, and which of them vote. It is
// changed here, one change at a time, and the node that leads alone changes it, with the
// ballot.
type configuration struct {
	raft     *raft.Raft
	patience time.Duration // for one change
}

// servers are the nodes in Raft's configuration, by their ids.
func (c *configuration) servers() map[string]raft.Server {
	servers := make(map[string]raft.Server)
	future := c.raft.GetConfiguration()
	if future.Error() == nil {
		for _, s := range future.Configuration().Servers {
			servers[string(s.ID)] = s
		}
	}
	return servers
}

// alone reports whether no node but that one has the log, or is to get it.
func (c *configuration) alone(id string) bool {
	future := c.raft.GetConfiguration()
	if future.Error() != nil {
		return false
	}
	all := future.Configuration().Servers
	return len(all) == 1 && string(all[0].ID) == id
}

// voters are the ids of those that vote, in order.
func (c *configuration) voters() (ids []string) {
	for id, s := range c.servers() {
		if isVoter(s) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func isVoter(s raft.Server) bool { return s.ID != "" && s.Suffrage == raft.Voter }

// begin begins a change: n is the node as the cluster's state
// has it.
func (c *configuration) begin(one change, n state.Node) raft.Future {
	id := raft.ServerID(one.id)
	switch one.do {
	case add:
		if isVoter(c.servers()[one.id]) {
			return c.raft.AddVoter(id, raftAddress(n.ID, n.Addr), 0, c.patience) // it has moved
		}
		return c.raft.AddNonvoter(id, raftAddress(n.ID, n.Addr), 0, c.patience)
	case promote:
		return c.raft.AddVoter(id, raftAddress(n.ID, n.Addr), 0, c.patience)
	case demote:
		return c.raft.DemoteVoter(id, 0, c.patience)
	case remove:
		return c.raft.RemoveServer(id, 0, c.patience)
	}
	panic(fmt.Sprintf("change %d", one.do))
}
