package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// CommitMaps says that attempts of maps, which one node has written, are whole, and have
// their copies. Of each map the first wins. The result says of each which attempt that
// is, or why it is none.
type CommitMaps struct {
	Entry
	Maps MapsByStage
}

func (c *CommitMaps) about(*state) string {
	if len(c.Maps) == 0 || len(c.Maps[0].Maps) == 0 {
		return ""
	}
	return c.Maps[0].Maps[0].Writer
}

func (c *CommitMaps) check() error {
	if n := c.Maps.Len(); n == 0 || n > MaxCommitMaps {
		return fmt.Errorf("commit of %d maps %w: a command has 1 to %d", n, meta.ErrInvalid, MaxCommitMaps)
	}
	for i, g := range c.Maps {
		err := first(must(len(g.Maps) > 0 && (i == 0 || g.Stage > c.Maps[i-1].Stage), meta.ErrInvalid), g.Maps.check(c.about(nil)))
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *CommitMaps) comesTo(r Result) bool {
	all := r.Maps()
	return len(all) == c.Maps.Len() && !slices.ContainsFunc(all, func(one Committed) bool { return one.Commit == nil && one.Error == nil })
}

func (c *CommitMaps) apply(s *state) (Result, error) {
	var all []Committed
	for _, maps := range c.Maps {
		all = append(all, maps.commit(s)...)
	}
	return Result{poolResult{Maps: all}}, nil
}

func (c *StageMaps) commit(s *state) []Committed {
	p := s.pool()
	all := make([]Committed, len(c.Maps))
	name, ok := p.names.get(c.Stage)
	g, err := name.open(s, c.Generation)
	if !ok {
		err = fmt.Errorf("stage of number %d %w", c.Stage, meta.ErrNotExist)
	}
	admit := p.admit
	if g.Blobs() {
		admit = p.admitBlob
	}
	for i, one := range c.Maps {
		won, err := one, err
		if err == nil {
			won, err = admit(s, name.Job, &g, one)
		}
		if err != nil {
			all[i].Error = meta.Tell(err)
			continue
		}
		all[i].Commit = &won
	}
	return all
}

// admit enters an attempt, if it is the first of its map, and returns the one that has
// won.
func (p *pool) admit(s *state, job string, g *PoolStage, is Commit) (Commit, error) {
	has, ok := p.commit(g.Number, is.Map)
	lost := ok && len(has.Nodes) == 0
	switch {
	case ok && !lost:
		return has, nil
	case lost && (has.Sum != is.Sum || has.Size != is.Size): // readers may have read some of those bytes
		return Commit{}, meta.Worded(meta.ErrUnequal, "map %d of stage %s was lost, and this attempt has other bytes, so that a reader could mix two attempts; begin the stage anew: rankfs shuffle reset %s/%s",
			is.Map, g.Name, job, g.Name)
	}
	if err := first(is.check(g.Spec), must(is.Name == "", meta.ErrInvalid)); err != nil {
		return Commit{}, err
	}
	if !lost && g.Sealed {
		return Commit{}, fmt.Errorf("map %d: stage %s %w: it is sealed; for other maps begin it anew: rankfs shuffle reset %s/%s", is.Map, g.Name, meta.ErrBusy, job, g.Name)
	}
	is, err := is.on(s)
	if err != nil {
		return Commit{}, err
	}
	n := need{1, is.kept()}
	if lost {
		n.count = 0
	}
	j, err := p.named(job, g.Job)
	if err != nil {
		return Commit{}, err
	}
	r := j.Reserved[is.Writer]
	taken := min(n.bytes, r.Bytes)
	if err := p.hasRoom(job, *g, n, taken); err != nil {
		return Commit{}, err
	}
	if taken > 0 {
		r.Bytes -= taken
		p.put(j.reserving(is.Writer, r))
	}
	if lost {
		p.setCommit(s, *g, is)
	} else {
		*g = p.enter(s, *g, is)
	}
	s.changed.files = true
	return is, nil
}

// admitBlob puts a blob. The last that has a name wins.
func (p *pool) admitBlob(s *state, job string, g *PoolStage, is Commit) (Commit, error) {
	n, err := p.mayPut(s, g, is, false, nil)
	if err == nil {
		err = p.hasRoom(job, *g, n, 0)
	}
	if err != nil {
		return Commit{}, err
	}
	p.putBlob(s, g, is)
	won, _ := p.commit(g.Number, is.Map)
	return won, nil
}
