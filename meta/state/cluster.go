package state

import (
	"fmt"

	"rankfs/meta"
)

// own are the commands of the machine itself, about what is in the header.
var own = []command{
	{kind: 1, blank: blank[Found], by: leaders},
	{kind: 21, blank: blank[Upgrade], by: leaders},
}

// A Cluster is identified by its id and by the authority that it trusts.
type Cluster struct {
	ID string `json:",omitempty"`
	CA string `json:",omitempty"` // fingerprint of the certificate of its authority
}

// Found begins a cluster, once.
type Found struct {
	Entry
	Cluster
}

func (c *Found) check() error {
	return first(checkText("cluster id", c.ID, maxText), checkText("fingerprint", c.CA, maxText))
}

func (c *Found) apply(s *state) (Result, error) {
	switch s.Cluster {
	case c.Cluster:
		return Result{}, nil
	case Cluster{}:
		s.Cluster = c.Cluster
		if said := versionSaid(c); said > Oldest {
			s.Version = said
		}
		s.changed.cluster = true
		return Result{}, nil
	}
	return Result{}, fmt.Errorf("cluster %s %w: it was founded before", s.Cluster.ID, meta.ErrExist)
}
