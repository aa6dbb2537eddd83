package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// MakeStage makes a stage of a job. The same command again, told by its nonce, has the
// same result.
type MakeStage struct {
	Entry
	Job    string
	Number uint64 // of the job
	Name   string
	Nonce  uint64
}

func (c *MakeStage) check() error {
	return first(meta.CheckName(c.Job), meta.CheckName(c.Name))
}

func (c *MakeStage) comesTo(r Result) bool { return r.Stage() != nil }

func (c *MakeStage) apply(s *state) (Result, error) {
	p := s.pool()
	j, err := p.named(c.Job, c.Number)
	if err != nil {
		return Result{}, err
	}
	if g, ok := p.stages.get(stageKey{j.Number, c.Name}); ok {
		if g.Nonce == c.Nonce {
			return Result{poolResult{Stage: &g}}, nil
		}
		return Result{}, fmt.Errorf("stage %s of job %s %w", c.Name, c.Job, meta.ErrExist)
	}
	if p.stages.len() >= MaxStages {
		return Result{}, fmt.Errorf("stage %s of job %s: the shuffle pool %w: it has %d stages; remove some", c.Name, c.Job, meta.ErrBusy, MaxStages)
	}
	g := PoolStage{Job: j.Number, Name: c.Name, Number: s.next(), Nonce: c.Nonce}
	if g.Blobs() {
		g.Spec = blobSpec
	}
	p.makeStage(c.Job, g)
	s.changed.cluster = true
	return Result{poolResult{Stage: &g}}, nil
}

func (c *StageName) check() error {
	return first(meta.CheckName(c.Job), meta.CheckName(c.Name))
}

func (c *StageName) of(s *state) (PoolStage, error) {
	return s.pool().staged(c.Job, c.Name, c.Number)
}

// DropStage forgets a stage, with its maps. One that is not there is forgotten. With Empty,
// one stays in which there is a map or a blob: that may have come since the caller looked.
type DropStage struct {
	Entry
	StageName
	Empty bool `json:",omitempty"`
}

func (c *DropStage) apply(s *state) (Result, error) {
	g, err := c.of(s)
	switch {
	case err != nil:
		return Result{}, nil
	case c.Empty && !s.pool().isEmpty(g):
		return Result{}, fmt.Errorf("what is in stage %s of job %s %w: remove that first", c.Name, c.Job, meta.ErrExist)
	}
	if err := s.stageInUse(fmt.Sprintf("stage %s of job %s", c.Name, c.Job), g); err != nil {
		return Result{}, err
	}
	p := s.pool()
	p.dropStage(g)
	if j, err := p.named(c.Job, g.Job); err == nil {
		j.Life = p.life(j)
		p.put(j)
	}
	s.changed.cluster = true
	return Result{}, nil
}

// isEmpty reports whether a stage has no map of which there is a copy, and no blob.
func (p *pool) isEmpty(g PoolStage) bool {
	t, ok := p.commits.get(g.Number)
	if !ok {
		return true
	}
	for c := range t.of.values() {
		if len(c.Nodes) > 0 {
			return false
		}
	}
	return t.blobs.len() == 0
}

// BeginStage says that attempts of a stage are written, on some node.
type BeginStage struct {
	Entry
	StageName
}

func (c *BeginStage) apply(s *state) (Result, error) {
	g, err := c.of(s)
	switch {
	case err != nil:
		return Result{}, err
	case g.Blobs():
		return Result{}, fmt.Errorf("attempt of %s %w: blobs have none", c.Name, meta.ErrInvalid)
	case !g.Begun:
		g.Begun = true
		s.pool().stages.set(stageKey{g.Job, g.Name}, g)
		s.changed.cluster = true
	}
	return Result{poolResult{Stage: &g}}, nil
}

// SpecifyStage gives a stage its spec, or another one until attempts are written. An attempt
// may be sealed nevertheless by the spec before, as what a node knows is a little old: it is
// of an earlier generation then.
type SpecifyStage struct {
	Entry
	StageName
	Spec string
}

func (c *SpecifyStage) check() error {
	_, err := meta.ParseStage(c.Spec)
	return first(c.StageName.check(), err)
}

func (c *SpecifyStage) apply(s *state) (Result, error) {
	spec, err := meta.ParseStage(c.Spec)
	if err != nil {
		return Result{}, err
	}
	g, err := c.of(s)
	switch {
	case err != nil:
		return Result{}, err
	case g.Blobs():
		return Result{}, fmt.Errorf("spec of %s %w: blobs have none", c.Name, meta.ErrInvalid)
	case g.Spec == spec:
		return Result{poolResult{Stage: &g}}, nil
	case g.Maps > 0 || g.Sealed:
		return Result{}, fmt.Errorf("spec of stage %s %w: it is %s, and maps are committed; make another stage", c.Name, meta.ErrBusy, g.Spec)
	case g.Specified() && g.Begun:
		return Result{}, fmt.Errorf("spec of stage %s %w: it is %s, and attempts are written; make another stage, or begin this one anew: rankfs shuffle reset %s/%[1]s",
			c.Name, meta.ErrBusy, g.Spec, c.Job)
	}
	p := s.pool()
	j, err := p.named(c.Job, g.Job)
	if err != nil {
		return Result{}, err
	}
	if g.Specified() {
		g.Generation++
	}
	g.Spec = spec
	p.stages.set(stageKey{g.Job, g.Name}, g)
	j.Life = p.life(j)
	p.put(j)
	s.changed.cluster = true
	return Result{poolResult{Stage: &g}}, nil
}

// KeepCopy says that a node has a copy of the map that is committed, or has none any
// more.
type KeepCopy struct {
	Entry
	StageName
	Node string
	Map  uint64
	Sum  uint64 // of the copy, or of what was lost
	Has  bool   `json:",omitempty"`

	// Spare is a copy that the node gives up as enough others have one.
	Spare bool `json:",omitempty"`
}

func (c *KeepCopy) about(*state) string { return c.Node }

func (c *KeepCopy) check() error { return first(c.StageName.check(), checkID(c.Node)) }

func (c *KeepCopy) apply(s *state) (Result, error) {
	g, err := c.of(s)
	if err != nil {
		return Result{}, err
	}
	has, ok := s.pool().commit(g.Number, c.Map)
	switch _, err := s.nodes().member(c.Node); {
	case err != nil:
		return Result{}, err
	case !ok || has.Sum != c.Sum:
		return Result{}, meta.Worded(meta.ErrOvertaken, "copy of map %d of stage %s is of another attempt than the committed one, or none is committed", c.Map, c.Name)
	case slices.Contains(has.Nodes, c.Node) == c.Has:
		return Result{poolResult{Commit: &has}}, nil
	case c.Spare && s.standing(has.withoutCopy(c.Node).Nodes) < g.Spec.Copies:
		return Result{}, meta.Worded(meta.ErrOvertaken, "copy of map %d of stage %s is needed: %d others are on nodes that are up and stay", c.Map, c.Name,
			s.standing(has.withoutCopy(c.Node).Nodes))
	case c.Has && len(has.Nodes) >= meta.MaxCopies:
		return Result{}, fmt.Errorf("copy of map %d of stage %s %w: there are %d", c.Map, c.Name, meta.ErrBusy, len(has.Nodes))
	case c.Has:
		has.Nodes = append(slices.Clone(has.Nodes), c.Node)
	default:
		has = has.withoutCopy(c.Node)
	}
	s.pool().setCommit(s, g, has)
	s.changed.cluster = true
	return Result{poolResult{Commit: &has}}, nil
}

// DropMap gives up all copies of a map, if they have that sum.
type DropMap struct {
	Entry
	StageName
	Map uint64
	Sum uint64
}

func (c *DropMap) apply(s *state) (Result, error) {
	g, err := c.of(s)
	if err != nil {
		return Result{}, err
	}
	if has, ok := s.pool().commit(g.Number, c.Map); ok && has.Sum == c.Sum {
		if err := s.stageInUse(fmt.Sprintf("map %d of stage %s of job %s", c.Map, c.Name, c.Job), g); err != nil {
			return Result{}, err
		}
		has.Nodes = nil
		s.pool().setCommit(s, g, has)
		s.changed.files = true
	}
	return Result{}, nil
}

// SealStage says that no more maps come.
type SealStage struct {
	Entry
	StageName
}

func (c *SealStage) apply(s *state) (Result, error) {
	g, err := c.of(s)
	switch {
	case err != nil:
		return Result{}, err
	case g.Blobs():
		return Result{}, fmt.Errorf("seal of %s %w: blobs are put as long as the job is there", c.Name, meta.ErrInvalid)
	case g.Sealed:
		return Result{poolResult{Stage: &g}}, nil
	case !g.Specified():
		return Result{}, fmt.Errorf("stage %s %w: it has no spec yet; write one", c.Name, meta.ErrInvalid)
	case g.Maps < g.Spec.Maps:
		return Result{}, fmt.Errorf("stage %s %w: %d of its %d maps are committed; the last of them seals it", c.Name, meta.ErrBusy, g.Maps, g.Spec.Maps)
	}
	g.Sealed = true
	s.pool().stages.set(stageKey{g.Job, g.Name}, g)
	s.changed.cluster = true
	return Result{poolResult{Stage: &g}}, nil
}

// ResetStage begins a stage anew, without its maps, if it is in that generation.
type ResetStage struct {
	Entry
	StageName
	Generation uint64 `json:",omitempty"`
}

func (c *ResetStage) apply(s *state) (Result, error) {
	g, err := c.of(s)
	if err != nil {
		return Result{}, err
	}
	switch {
	case c.Generation > g.Generation:
		return Result{}, fmt.Errorf("generation %d of stage %s %w: it is in generation %d", c.Generation, c.Name, meta.ErrInvalid, g.Generation)
	case c.Generation == g.Generation:
		s.pool().forget(g)
		g.Generation++
		g.Resets++
		g.Begun, g.Sealed, g.Maps, g.Bytes = false, false, 0, 0
		s.pool().stages.set(stageKey{g.Job, g.Name}, g)
		s.changed.cluster = true
	}
	return Result{poolResult{Stage: &g}}, nil
}
