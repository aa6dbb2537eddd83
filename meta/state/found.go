package state

import (
	"fmt"

	"rankfs/meta"
)

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
		if said := versionSaid(c); said >= Signed {
			s.Version = said
		}
		s.changed.cluster = true
		return Result{}, nil
	}
	return Result{}, fmt.Errorf("cluster %s %w: it was founded before", s.Cluster.ID, meta.ErrExist)
}
