package quota_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/quota"
)

// A cluster has one job with a quota, which only this node uses.
type cluster struct {
	quota   int64
	has     state.ReserveQuota // as it was told last
	fails   error
	unknown bool
}

func (c *cluster) PoolJob(name string) (state.PoolJob, bool) {
	return state.PoolJob{Name: name, Number: 7, Quota: c.quota}, true
}
func (c *cluster) PoolLeft(string) int64      { return c.quota - (c.has.Asked - c.has.Freed) }
func (c *cluster) Self() string               { return "self" }
func (c *cluster) Know(context.Context) error { return nil }

func (c *cluster) Reserve(_ context.Context, r *state.ReserveQuota) (bool, error) {
	if c.fails == nil || c.unknown {
		c.has = *r
	}
	return c.unknown, c.fails
}

// What is reserved others cannot have, until its file is gone, or has become a map, or it is undone.
// Of a reservation that was refused nothing is kept; of one whose outcome is not known, what may have
// been reserved is freed with the next report.
func TestPromises(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c, j := &cluster{quota: 100}, quota.Job{Name: "j", Number: 7}
	p := quota.New(c, c, root, func() ([]quota.File, error) { return nil, nil })
	reserve := func(name string, bytes int64) (undo func(), err error) {
		if err := root.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return p.Reserve(t.Context(), j, name, bytes)
	}
	left := func(want int64, when string) {
		t.Helper()
		if err := p.MayGrow(j, want, 1); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := p.MayGrow(j, want+1, 1); !errors.Is(err, meta.ErrQuota) {
			t.Errorf("%s more than %d bytes are left: %v", when, want, err)
		}
	}
	undo, err := reserve("a", 60)
	if err != nil {
		t.Fatal(err)
	}
	left(40, "60 bytes are reserved")
	if err := p.MayGrow(j, 21, 2); !errors.Is(err, meta.ErrQuota) {
		t.Errorf("two copies count as one: %v", err)
	}
	c.fails = meta.ErrQuota
	if _, err := reserve("b", 41); !errors.Is(err, meta.ErrQuota) {
		t.Errorf("more than is left: %v", err)
	}
	left(40, "some more was refused")
	c.fails, c.unknown = context.DeadlineExceeded, true
	if _, err := reserve("b", 30); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reservation whose outcome is not known: %v", err)
	}
	left(40, "some more may have been reserved")
	c.fails, c.unknown = nil, false
	if err := p.TellFreed(t.Context(), j); err != nil || c.has.Asked-c.has.Freed != 60 {
		t.Errorf("settled, %d bytes are reserved: %v", c.has.Asked-c.has.Freed, err)
	}
	undo()
	left(100, "it is undone")
	if _, err := reserve("c", 50); err != nil {
		t.Fatal(err)
	}
	if err := root.Remove("c"); err != nil {
		t.Fatal(err)
	}
	left(100, "its file is gone")
	if _, err := reserve("d", 50); err != nil {
		t.Fatal(err)
	}
	p.Spent("d", 30)
	left(70, "30 bytes of it are a map's") // which counts there
}

// A daemon goes on from what one before it has reserved: as far as there are files that have it.
func TestReservedBefore(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("a", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &reserved{cluster{quota: 100, has: state.ReserveQuota{Asked: 90, Freed: 10}}}
	p := quota.New(c, c, root, func() ([]quota.File, error) { return []quota.File{{Name: "a", Bytes: 50}}, nil })
	if err := p.TellFreed(t.Context(), quota.Job{Name: "j", Number: 7}); err != nil || c.has.Asked-c.has.Freed != 50 {
		t.Errorf("%d bytes are reserved, and there is one file of 50: %v", c.has.Asked-c.has.Freed, err)
	}
}

// A reserved cluster knows what this node has reserved before.
type reserved struct{ cluster }

func (c *reserved) PoolJob(name string) (state.PoolJob, bool) {
	is, ok := c.cluster.PoolJob(name)
	is.Reserved = map[string]state.Reserved{"self": {Asked: c.has.Asked, Freed: c.has.Freed, Bytes: c.has.Asked - c.has.Freed}}
	return is, ok
}
