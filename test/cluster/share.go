package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"rankfs/test/cluster/internal/site"
	"rankfs/test/hadoop"
)

// patience is how long a test waits for the cluster: others may be starting it
// or have it for themselves, one after the other.
const patience = 30 * time.Minute

// Shared gives a test the plain cluster, healthy, until the test ends. The
// test breaks no daemon and keeps to files of its own, see [Cluster.Dir]; replicas of
// these it may damage.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	return take(t, "plain", (*Cluster).share)
}

// Wide gives a test a cluster with a datanode more, for itself, as Exclusive does: a
// daemon of rankfs on a host has the port there.
func Wide(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, "wide")
}

// Plans gives a test another cluster as Wide's, for itself, as Exclusive does: what
// breaks hosts for a minute does not keep the users of Wide waiting.
func Plans(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, "plans")
}

// Mounts gives a test another cluster as Shared's: what daemons with mounts on its hosts
// break, and wait for, keeps no client waiting that is tested on the plain one.
func Mounts(t testing.TB) *Cluster {
	t.Helper()
	return take(t, "mounts", (*Cluster).share)
}

// MountsAlone gives a test the cluster of Mounts as Exclusive does the plain one.
func MountsAlone(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, "mounts")
}

// Bare gives a test four hosts on which nothing runs, for itself, as Exclusive does. There
// are a few such clusters, so that tests that wait for daemons do so beside each other.
func Bare(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, free(t, "bare1", "bare2", "bare3"))
}

// Five gives a test five such hosts, for itself, as Exclusive does.
func Five(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, "five")
}

// Exclusive gives a test the plain cluster, healthy and for itself, until the
// test ends. Then what it broke is repaired; what cannot be fails the test. A
// test that has it already, shared or not, waits for itself.
func Exclusive(t testing.TB) *Cluster {
	t.Helper()
	return alone(t, "plain")
}

func alone(t testing.TB, name string) *Cluster {
	t.Helper()
	return take(t, name, (*Cluster).seize)
}

// free is the name of one of some clusters that are alike. No other test is told it until
// this one ends.
func free(t testing.TB, names ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	name, chosen, err := choose(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { chosen.Close() })
	t.Logf("cluster %s: chosen after %.1f s", name, time.Since(asked).Seconds())
	return name
}

func choose(ctx context.Context, names []string) (string, *site.Lock, error) {
	if err := NeedRoot(); err != nil {
		return "", nil, err
	}
	home, err := hadoop.Prepare(ctx)
	if err != nil {
		return "", nil, err
	}
	for {
		for _, name := range names {
			s, err := site.New(name, home)
			if err != nil {
				return "", nil, err
			}
			if chosen, err := s.TryLock(site.Chosen, true); !errors.Is(err, site.ErrLocked) {
				return name, chosen, err
			}
		}
		select {
		case <-ctx.Done():
			return "", nil, fmt.Errorf("wait for one of the clusters %q: %w", names, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func take(t testing.TB, name string, use func(*Cluster, context.Context) (release func() error, err error)) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	c, err := Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	release, err := use(c, ctx)
	if err != nil {
		t.Fatal(errors.Join(err, c.Close()))
	}
	given := time.Now()
	t.Cleanup(func() {
		back := time.Now()
		if err := errors.Join(release(), c.Close()); err != nil {
			t.Error(err)
		}
		t.Logf("cluster %s: waited for %.1f s, had for %.1f s, repaired for %.1f s",
			name, given.Sub(asked).Seconds(), back.Sub(given).Seconds(), time.Since(back).Seconds())
	})
	return c
}

// share waits until no test has the cluster alone.
func (c *Cluster) share(ctx context.Context) (release func() error, err error) {
	using, err := c.lock(ctx, false)
	if err != nil {
		return nil, err
	}
	if !c.broken() {
		return using.Close, nil
	}
	// A test that had it alone was killed. Repair it in its place.
	using.Close()
	release, err = c.seize(ctx)
	if err != nil {
		return nil, err
	}
	if err := release(); err != nil {
		return nil, err
	}
	return c.share(ctx)
}

// seize waits until no other test uses the cluster. The cluster counts as broken
// until release has repaired it.
func (c *Cluster) seize(ctx context.Context) (release func() error, err error) {
	using, err := c.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	if c.broken() {
		err = c.repair(ctx)
	}
	if err == nil {
		err = os.WriteFile(c.site.Broken(), nil, 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, using.Close())
	}
	return func() error { return errors.Join(c.release(), using.Close()) }, nil
}

func (c *Cluster) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	if err := c.repair(ctx); err != nil {
		return err
	}
	return os.Remove(c.site.Broken())
}

func (c *Cluster) broken() bool {
	_, err := os.Stat(c.site.Broken())
	return err == nil
}

// lock waits for the right to use the cluster. No test overtakes one that waits, or
// a test that wants it alone would wait for as long as others come.
func (c *Cluster) lock(ctx context.Context, alone bool) (*site.Lock, error) {
	waiting, err := c.site.WaitLock(ctx, site.Waiting, true)
	if err != nil {
		return nil, err
	}
	defer waiting.Close()
	return c.site.WaitLock(ctx, site.Using, alone)
}
