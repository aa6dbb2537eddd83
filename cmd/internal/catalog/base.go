package catalog

import (
	"cmp"

	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/state"
)

// inherit notes what a dataset that is made of another one has of it: the source of the
// bytes, and the node that has that. It returns what it is made of.
func (c *Catalog) inherit(r *Registration) (bases []string, err error) {
	u, err := uri.Parse(r.Source)
	if err != nil || !u.Derived() {
		return nil, err
	}
	if c.config.State.Version() < state.Derived {
		return nil, meta.Worded(meta.ErrUnavailable, "a dataset that is made of another one cannot be registered before all nodes are of this release; see: rankfs node ls")
	}
	base, err := c.Get(u.Base)
	if err != nil {
		return nil, err
	}
	r.Root, r.Origin = cmp.Or(base.Root, base.Source), base.Origin
	return []string{u.Base}, nil
}
