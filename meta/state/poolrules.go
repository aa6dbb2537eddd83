package state

import (
	"fmt"

	"rankfs/meta"
)

// open is the stage of that name, as one that takes maps.
func (c *StageName) open(s *state, generation uint64) (PoolStage, error) {
	g, err := c.of(s)
	switch {
	case err != nil:
		return g, err
	case generation != g.Generation:
		return g, meta.Worded(meta.ErrOvertaken, "stage %s was reset or has another spec since its maps were begun", c.Name)
	case !g.Specified():
		return g, fmt.Errorf("stage %s %w: it has no spec yet; write one", c.Name, meta.ErrInvalid)
	}
	return g, nil
}

// check reports what cannot be attempts that a node has written.
func (c Commits) check(writer string) error {
	for i, one := range c {
		err := first(one.check(meta.Stage{}), must(len(one.Nodes) > 0 && one.Writer == writer && (i == 0 || one.Map > c[i-1].Map), meta.ErrInvalid))
		if err != nil {
			return err
		}
	}
	return nil
}

// on is the commit with nodes that the cluster has, in the texts that it has of them.
func (c Commit) on(s *state) (Commit, error) {
	nodes := make([]string, len(c.Nodes))
	for i, id := range c.Nodes {
		n, err := s.nodes().member(id)
		if err != nil {
			return c, err
		}
		nodes[i] = n.ID
	}
	c.Nodes = nodes
	return c, nil
}

// A need is the room that a change takes of the pool: maps or names, and bytes of all copies.
type need struct {
	count int
	bytes int64
}

func (n *need) add(more need) { n.count, n.bytes = n.count+more.count, n.bytes+more.bytes }

// hasRoom refuses what is more than there may be, or with which the job has more than its
// quota, of which less is needed by what is reserved. Copies that are made later are no
// matter of the quota: they are as many as were wanted.
func (p *pool) hasRoom(job string, g PoolStage, n need, reserved int64) error {
	if p.count+n.count > MaxCommits {
		return fmt.Errorf("the shuffle pool %w: it has %d maps and blobs; remove some", meta.ErrBusy, p.count)
	}
	j, err := p.named(job, g.Job)
	if err != nil {
		return err
	}
	if n.bytes > 0 && n.bytes-reserved > p.left(j) {
		return p.overQuota(j, "stage "+g.Name+" would have %d more", n.bytes)
	}
	return nil
}
