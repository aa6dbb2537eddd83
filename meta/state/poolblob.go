package state

import (
	"fmt"

	"rankfs/meta"
)

// PutBlobs gives names to directories and to blobs that a node has written, to all at
// once or to none.
type PutBlobs struct {
	Entry
	StageName
	Generation uint64 `json:",omitempty"`
	Node       string
	New        bool    `json:",omitempty"` // no name may be a blob's already
	Dirs       []Blob  `json:",omitempty"` // which are new, and come after those that they are in
	Maps       Commits `json:",omitempty"`
}

func (c *PutBlobs) about(*state) string { return c.Node }

func (c *PutBlobs) check() error {
	if n := len(c.Dirs) + len(c.Maps); n == 0 || n > meta.MaxPut {
		return fmt.Errorf("put of %d blobs %w: a command has 1 to %d", n, meta.ErrInvalid, meta.MaxPut)
	}
	names := make(map[string]bool)
	for _, d := range c.Dirs {
		if err := first(meta.CheckKey(d.Name), must(d.Dir && d.Number < maxBlob && !names[d.Name], meta.ErrInvalid)); err != nil {
			return err
		}
		names[d.Name] = true
	}
	if err := c.Maps.check(c.Node); err != nil {
		return err
	}
	for _, one := range c.Maps {
		if names[one.Name] {
			return fmt.Errorf("list of blobs %w: two have one name", meta.ErrInvalid)
		}
		names[one.Name] = true
	}
	return first(checkID(c.Node), c.StageName.check())
}

func (c *PutBlobs) apply(s *state) (Result, error) {
	g, err := c.open(s, c.Generation)
	if err == nil && !g.Blobs() {
		err = fmt.Errorf("stage %s for blobs %w: put them into %s", c.Name, meta.ErrInvalid, meta.BlobDir)
	}
	if err != nil {
		return Result{}, err
	}
	p := s.pool()
	made := make(map[string]bool) // directories, by this command
	var all need
	for _, d := range c.Dirs {
		n, err := p.mayMake(g.Number, d, made)
		if err != nil {
			return Result{}, err
		}
		all.add(n)
		made[d.Name] = true
	}
	for _, one := range c.Maps {
		n, err := p.mayPut(s, &g, one, c.New, made)
		if err != nil {
			return Result{}, err
		}
		all.add(n)
	}
	if err := p.hasRoom(c.Job, g, all, 0); err != nil {
		return Result{}, err
	}
	for _, d := range c.Dirs {
		p.makeDir(s, g, d)
	}
	for _, one := range c.Maps {
		p.putBlob(s, &g, one)
	}
	return Result{poolResult{Stage: &g}}, nil
}

// mayMake says why a directory cannot be made, or what it takes: nothing, if the same
// command has made it.
func (p *pool) mayMake(stage uint64, d Blob, made map[string]bool) (need, error) {
	has, ok := p.blob(stage, d.Name)
	switch {
	case ok && has == d:
		return need{}, nil
	case ok:
		return need{}, fmt.Errorf("%s %w", d.Name, meta.ErrExist)
	}
	return need{count: 1}, p.isDir(stage, meta.KeyDir(d.Name), made)
}

// mayPut says why a blob cannot have its name, or what it takes beside one that has the
// name now: nothing, if that is the same.
func (p *pool) mayPut(s *state, g *PoolStage, is Commit, isNew bool, made map[string]bool) (n need, err error) {
	has, ok := p.blob(g.Number, is.Name)
	_, taken := p.commit(g.Number, is.Map)
	switch {
	case ok && has.Number == is.Map && !has.Dir:
		_, err := is.on(s)
		return need{}, err
	case ok && (isNew || has.Dir):
		return need{}, fmt.Errorf("%s %w", is.Name, meta.ErrExist)
	case taken:
		return need{}, fmt.Errorf("number %d of a blob %w: another one has it; put it again", is.Map, meta.ErrBusy)
	}
	n = need{1, is.kept()}
	if old, ok := p.commit(g.Number, has.Number); ok {
		n.add(need{-1, -old.kept()})
	}
	_, err = is.on(s)
	return n, first(meta.CheckKey(is.Name), is.check(g.Spec), p.isDir(g.Number, meta.KeyDir(is.Name), made), err)
}

// makeDir enters a directory.
func (p *pool) makeDir(s *state, g PoolStage, d Blob) {
	if _, ok := p.blob(g.Number, d.Name); !ok {
		p.toChange(s, g.Number).blobs.set(d)
		p.count++
		s.changed.files = true
	}
}

// putBlob enters a blob, which takes the name of one that has it already.
func (p *pool) putBlob(s *state, g *PoolStage, is Commit) {
	has, ok := p.blob(g.Number, is.Name)
	is, _ = is.on(s)
	if ok && has.Number == is.Map {
		if c, _ := p.commit(g.Number, is.Map); len(c.Nodes) == 0 && c.Sum == is.Sum && c.Size == is.Size { // lost
			p.setCommit(s, *g, is)
			s.changed.files = true
		}
		return
	}
	if ok {
		p.dropBlob(s, g, has)
	}
	*g = p.enter(s, *g, is)
	s.changed.files = true
}

// dropBlob forgets a name, and the blob that it stands for.
func (p *pool) dropBlob(s *state, g *PoolStage, b Blob) {
	t := p.toChange(s, g.Number)
	t.blobs.drop(b.Name)
	p.count--
	if !b.Dir {
		c, _ := t.of.get(b.Number)
		p.keep(g.Job, -c.kept())
		g.Maps--
		g.Bytes -= c.Size
		t.of.drop(b.Number)
		p.stages.set(stageKey{g.Job, g.Name}, *g)
	}
	s.changed.files = true
}

// DropBlob forgets a blob, or a directory in which nothing is, if its name stands for
// that still.
type DropBlob struct {
	Entry
	StageName
	Blob Blob
}

func (c *DropBlob) check() error { return first(c.StageName.check(), meta.CheckKey(c.Blob.Name)) }

func (c *DropBlob) apply(s *state) (Result, error) {
	p := s.pool()
	g, err := c.of(s)
	if err != nil {
		return Result{}, err
	}
	has, ok := p.blob(g.Number, c.Blob.Name)
	switch {
	case !ok || has != c.Blob:
		return Result{}, nil
	case has.Dir && p.hasBelow(g.Number, has.Name):
		return Result{}, fmt.Errorf("what is in directory %s of blobs %w: remove that first", has.Name, meta.ErrExist)
	}
	p.dropBlob(s, &g, has)
	return Result{}, nil
}
