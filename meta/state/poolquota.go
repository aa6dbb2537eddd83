package state

import (
	"math"

	"rankfs/meta"
)

// ReserveQuota says how much of a job's quota a node has ever asked for, for attempts in all
// their copies, and how much of that it has given back. What it has others cannot have.
type ReserveQuota struct {
	Entry
	Node   string
	Name   string
	Number uint64
	Asked  int64
	Freed  int64 `json:",omitempty"`
}

func (c *ReserveQuota) about(*state) string { return c.Node }

func (c *ReserveQuota) check() error {
	return first(meta.CheckName(c.Name), checkID(c.Node), must(c.Asked > 0 && c.Freed >= 0, meta.ErrInvalid))
}

func (c *ReserveQuota) apply(s *state) (Result, error) {
	p := s.pool()
	j, err := p.named(c.Name, c.Number)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.nodes().member(c.Node); err != nil {
		return Result{}, err
	}
	r := j.Reserved[c.Node]
	is := Reserved{Asked: max(r.Asked, c.Asked), Freed: max(r.Freed, c.Freed)}
	more := is.Asked - r.Asked - (is.Freed - r.Freed)
	switch left := p.left(j); {
	case j.Quota == 0: // there is none to reserve
	case more > left && more > 0:
		return Result{}, p.overQuota(j, "attempts on a node would reserve %d more", more)
	default:
		is.Bytes = max(0, r.Bytes+more)
	}
	p.put(j.reserving(c.Node, is))
	s.changed.cluster = true
	return Result{}, nil
}

// left is the part of a job's quota that is neither used nor reserved.
func (p *pool) left(j PoolJob) int64 {
	if j.Quota == 0 {
		return math.MaxInt64
	}
	has, _ := p.kept.get(j.Number)
	return j.Quota - has - j.reserved()
}

func (p *pool) overQuota(j PoolJob, would string, bytes int64) error {
	has, _ := p.kept.get(j.Number)
	return meta.Worded(meta.ErrQuota, "job %s has %d bytes of a quota of %d, all copies counted, attempts have reserved %d, and "+would+"; remove stages, or give it a larger quota: rankfs shuffle quota %[1]s SIZE",
		j.Name, has, j.Quota, j.reserved(), bytes)
}
