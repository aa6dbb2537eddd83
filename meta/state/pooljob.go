package state

import (
	"fmt"
	"maps"

	"rankfs/meta"
)

// MakeJob makes a job for a user. The same command again, told by its nonce, has the
// same result.
type MakeJob struct {
	Entry
	Node  string // on which the user is
	Name  string
	UID   uint32 `json:",omitempty"`
	GID   uint32 `json:",omitempty"`
	Nonce uint64
	Quota int64 `json:",omitempty"` // bytes that all copies of its maps may have; zero: any
}

func (c *MakeJob) about(*state) string { return c.Node }

func (c *MakeJob) check() error {
	return first(meta.CheckName(c.Name), checkID(c.Node), must(c.Quota >= 0, meta.ErrInvalid))
}

func (c *MakeJob) comesTo(r Result) bool { return r.Job() != nil }

func (c *MakeJob) apply(s *state) (Result, error) {
	p := s.pool()
	if j, ok := p.jobs.get(c.Name); ok {
		if j.Nonce == c.Nonce && j.UID == c.UID {
			return Result{poolResult{Job: &j}}, nil
		}
		return Result{}, fmt.Errorf("job %s of the shuffle pool %w", c.Name, meta.ErrExist)
	}
	switch {
	case p.byUser[c.UID] >= MaxUserJobs:
		return Result{}, meta.Worded(meta.ErrQuota, "job %s: user %d has %d jobs already, as many as may be; remove one", c.Name, c.UID, MaxUserJobs)
	case p.jobs.len() >= MaxPoolJobs:
		return Result{}, fmt.Errorf("job %s: the shuffle pool %w: it has %d jobs; remove one", c.Name, meta.ErrBusy, MaxPoolJobs)
	}
	j := PoolJob{
		Name: c.Name, Number: s.next(), UID: c.UID, GID: c.GID, Nonce: c.Nonce,
		Made: s.Now, Used: s.Now, Life: int64(meta.DefaultLife), Quota: c.Quota,
	}
	p.put(j)
	s.changed.cluster = true
	return Result{poolResult{Job: &j}}, nil
}

// SetQuota changes how many bytes all copies of a job's maps may have; zero: any. What is
// committed stays, also if it is more.
type SetQuota struct {
	Entry
	Name   string
	Number uint64
	Quota  int64 `json:",omitempty"`
}

func (c *SetQuota) check() error {
	return first(meta.CheckName(c.Name), must(c.Quota >= 0, meta.ErrInvalid))
}

func (c *SetQuota) apply(s *state) (Result, error) {
	p := s.pool()
	j, err := p.named(c.Name, c.Number)
	if err != nil {
		return Result{}, err
	}
	j.Quota = c.Quota
	p.put(j)
	s.changed.cluster = true
	return Result{poolResult{Job: &j}}, nil
}

// DropJob forgets a job, with all that it has. One that is not there, or that another
// of its name has followed, is forgotten. With Unused, one stays that was used after
// Used, or of which datasets are made, which is an error otherwise; with Empty, one that has
// a stage, or blobs.
type DropJob struct {
	Entry
	Name   string
	Number uint64
	Unused bool  `json:",omitempty"`
	Used   int64 `json:",omitempty"`
	Empty  bool  `json:",omitempty"`
}

func (c *DropJob) check() error { return meta.CheckName(c.Name) }

func (c *DropJob) apply(s *state) (Result, error) {
	p := s.pool()
	j, err := p.named(c.Name, c.Number)
	switch {
	case err != nil, c.Unused && (len(j.Users) > 0 || j.Used != c.Used):
		return Result{}, nil
	case c.Empty && p.hasStages(j):
		return Result{}, fmt.Errorf("what is in job %s of the shuffle pool %w: remove that first", c.Name, meta.ErrExist)
	}
	if made := s.madeOfJob(j.Name); len(made) > 0 {
		if c.Unused {
			return Result{}, nil
		}
		return Result{}, inUse(fmt.Sprintf("job %s of the shuffle pool", c.Name), made)
	}
	p.dropJob(j)
	s.changed.cluster = true
	return Result{}, nil
}

// hasStages reports whether a job has a stage, other than one of blobs of which there are
// none.
func (p *pool) hasStages(j PoolJob) bool {
	for k, g := range p.stages.m {
		if k.Job == j.Number && !(g.Blobs() && p.isEmpty(g)) {
			return true
		}
	}
	return false
}

// UseJob says that something of a job is open on a node, or nothing any more.
type UseJob struct {
	Entry
	Node   string
	Name   string
	Number uint64
	Open   bool `json:",omitempty"`
	Hold   bool `json:",omitempty"` // it is, or was, the file hold
}

func (c *UseJob) about(*state) string { return c.Node }

func (c *UseJob) check() error { return first(meta.CheckName(c.Name), checkID(c.Node)) }

func (c *UseJob) apply(s *state) (Result, error) {
	p := s.pool()
	j, err := p.named(c.Name, c.Number)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.nodes().member(c.Node); err != nil {
		return Result{}, err
	}
	j.Held = j.Held || c.Hold
	if c.Open {
		j.Users = maps.Clone(j.Users)
		if j.Users == nil {
			j.Users = make(map[string]int64)
		}
		j.Users[c.Node] = s.Now
		p.put(j)
	} else {
		p.put(j.without(c.Node, s.Now))
	}
	s.changed.cluster = true
	return Result{poolResult{Job: &j}}, nil
}
