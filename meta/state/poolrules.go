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
		n, err := s.member(id)
		if err != nil {
			return c, err
		}
		nodes[i] = n.ID
	}
	c.Nodes = nodes
	return c, nil
}

// A need is what a change takes of the pool: maps or names, and bytes of all copies.
type need struct {
	count int
	bytes int64
}

func (n *need) add(more need) { n.count, n.bytes = n.count+more.count, n.bytes+more.bytes }

// hasRoom refuses what is more than there may be, or with which the job has more than its
// quota. Copies that are made later are no matter of the quota: they are as many as were
// wanted.
func (p *pool) hasRoom(job string, g PoolStage, n need) error {
	if p.count+n.count > MaxCommits {
		return fmt.Errorf("the shuffle pool %w: it has %d maps and blobs; remove some", meta.ErrBusy, p.count)
	}
	j, err := p.named(job, g.Job)
	if err != nil {
		return err
	}
	if has, _ := p.kept.get(j.Number); j.Quota > 0 && n.bytes > 0 && has+n.bytes > j.Quota {
		return meta.Worded(meta.ErrQuota, "job %s has %d bytes of a quota of %d, all copies counted, and stage %s would have %d more; remove stages, or give it a larger quota: rankfs shuffle quota %[1]s SIZE",
			job, has, j.Quota, g.Name, n.bytes)
	}
	return nil
}
