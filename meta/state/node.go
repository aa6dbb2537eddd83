package state

import (
	"fmt"

	"rankfs/meta"
)

// A Node is one daemon that belongs to the cluster.
type Node struct {
	ID   string
	Host string // as HDFS knows it
	Addr string // HOST:PORT
	Key  string // fingerprint of its public key

	// Set by the machine; what a command says is ignored.
	Up       bool   `json:",omitempty"` // as far as the leader has seen
	Drained  bool   `json:",omitempty"` // gets no new work
	Admitted int64  `json:",omitempty"` // time of the cluster
	Life     uint64 `json:",omitempty"` // of its daemon, as that drew it; zero before the first Begin
	Role     Role   `json:",omitempty"` // none before version 4 of commands
	Wish     string `json:",omitempty"` // a node that is to be an operator, as its root says
	Wished   int64  `json:",omitempty"` // when that was said, by the time of the cluster
	Pool     int64  `json:",omitempty"` // bytes that it has for the shuffle pool; zero: it keeps nothing of that
	PoolFull bool   `json:",omitempty"` // and takes no more for now
	Called   string `json:",omitempty"` // what its host is called now, if that is another name than Host, which stays
}

func (n *Node) check() error {
	if n.Role != "" {
		return fmt.Errorf("role of node %s %w: its token says it", shorten(n.ID), meta.ErrInvalid)
	}
	return first(
		checkID(n.ID),
		checkText("host", n.Host, maxText),
		checkText("address", n.Addr, maxText),
		checkText("fingerprint", n.Key, maxText))
}
