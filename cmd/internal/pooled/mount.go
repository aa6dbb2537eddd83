package pooled

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/fs/pooltree"
)

// A Mount has the tree of the pool mounted below the mount of the node, and again if it was
// unmounted and the node's was not: an umount that finds the node's busy has taken the pool's
// away before. Its methods may be called concurrently, but Wait and Close only after Start.
type Mount struct {
	dir    string
	config pooltree.Config
	latest atomic.Pointer[pooltree.Tree]
	cancel context.CancelFunc
	task   sync.WaitGroup
}

// aboveTime is how long the node's mount may take to go after the pool's, if it does.
const aboveTime = time.Second

// Start mounts the tree of the pool.
func (m *Mount) Start(ctx context.Context, dir string, c pooltree.Config) error {
	m.dir, m.config = dir, c
	if err := m.mount(); err != nil {
		return err
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.task.Go(func() { m.keep(ctx) })
	return nil
}

// keep mounts it again until ctx is done.
func (m *Mount) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.latest.Load().Gone():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(aboveTime):
		}
		if err := m.mount(); err != nil {
			m.config.Log.Error("the shuffle pool is not mounted any more", "cause", err)
			return
		}
	}
}

func (m *Mount) mount() error {
	tree := pooltree.New(m.config)
	if err := tree.Mount(m.dir); err != nil {
		return err
	}
	m.latest.Store(tree)
	return nil
}

// Close unmounts it.
func (m *Mount) Close() error {
	m.cancel()
	m.task.Wait()
	return m.latest.Load().Unmount(m.dir)
}

// Wait returns when it is no longer mounted: detached with the mount above it, each of the two
// goes with its own last user.
func (m *Mount) Wait() { <-m.latest.Load().Gone() }

// Forget has the kernel forget the names there that are gone, once it is mounted.
func (m *Mount) Forget() {
	if tree := m.latest.Load(); tree != nil {
		tree.Forget()
	}
}

// Refusal is why files of the pool go through the daemon, although others do not; empty if
// none do.
func (m *Mount) Refusal() string {
	if tree := m.latest.Load(); tree != nil {
		return tree.Refusal()
	}
	return ""
}
