package group

import (
	"context"
	"slices"
	"time"

	"rankfs/meta"
)

// A directory says where other nodes are: as the cluster's state says, and for nodes
// that this one's copy of it lacks, as the file of known nodes does.
type directory struct {
	config *Config
	*knownNodes
}

// address is the address of a node, as far as this one knows.
func (d *directory) address(id string) (string, error) {
	if n, ok := d.config.Machine.Node(id); ok {
		return n.Addr, nil
	}
	for _, a := range d.list() {
		if a.ID == id {
			return a.Addr, nil
		}
	}
	return "", meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
}

// addresses are the known addresses of other nodes.
func (d *directory) addresses() (all []string) {
	for _, n := range d.config.Machine.Nodes() {
		if n.ID != d.config.Self.ID {
			all = append(all, n.Addr)
		}
	}
	for _, a := range d.list() {
		all = append(all, a.Addr)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// remember keeps the file as the cluster is, until ctx is done.
func (d *directory) remember(ctx context.Context, voters func() []string) {
	said := ""
	for {
		changed := d.config.Machine.ClusterChanged()
		if err := d.update(voters()); err != nil && err.Error() != said {
			said = err.Error()
			d.config.Log.Warn("not noted where the other nodes are", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(d.config.times.dead): // a change of voters does not change the machine
		}
	}
}

// update brings the file up to date: voters first, as one of them leads.
func (d *directory) update(voters []string) error {
	nodes := d.config.Machine.Nodes()
	if len(nodes) == 0 {
		return nil // the machine is empty yet, and the old list is needed to fill it
	}
	var first, others []knownNode
	for _, n := range nodes { // by their ids
		a := knownNode{n.ID, n.Addr}
		switch {
		case n.ID == d.config.Self.ID:
		case slices.Contains(voters, n.ID):
			first = append(first, a)
		default:
			others = append(others, a)
		}
	}
	return d.keep(append(first, others...))
}
