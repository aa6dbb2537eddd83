package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
)

// join finds the cluster running, or starts it. The caller holds it, so that
// it does not end meanwhile.
func join(ctx context.Context, want *site.Site) (*site.Site, error) {
	starting, err := want.WaitLock(ctx, site.Starting, true)
	if err != nil {
		return nil, err
	}
	defer starting.Close()
	switch running, err := runs(want); {
	case err != nil:
		return nil, err
	case !running:
		if err := launch(ctx, want); err != nil {
			return nil, fmt.Errorf("start cluster %s: %w", want.Name, err)
		}
	}
	if err := waitReady(ctx, want); err != nil {
		return nil, fmt.Errorf("wait for cluster %s: %w%s", want.Name, err, tail(want.Log()))
	}
	return site.Load(want.Dir)
}

// runs says whether there is a keeper: it has its lock until it is gone.
func runs(s *site.Site) (bool, error) {
	lock, err := s.TryLock(site.Keeping, true)
	if errors.Is(err, site.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// launch starts a keeper, in place of what one that was killed left on disk.
func launch(ctx context.Context, s *site.Site) error {
	if err := errors.Join(os.RemoveAll(s.Dir), os.MkdirAll(s.Dir, 0o755)); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.Keeper(), "rankfs/test/cluster/keeper")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the keeper: %w: %s", err, out)
	}
	if err := s.Save(); err != nil {
		return err
	}
	return startKeeper(s)
}

// startKeeper starts a keeper that outlives this process.
func startKeeper(s *site.Site) error {
	log, err := os.Create(s.Log())
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(s.Keeper(), "keep", s.Dir)
	c.Dir = s.Dir
	c.Stdout, c.Stderr = log, log
	c.Env = environment()
	c.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
	}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release() // this process does not wait for its end
}

// environment has the few variables of this test that the keeper and its daemons get.
func environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "JAVA_HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// waitReady waits until the keeper answers.
func waitReady(ctx context.Context, s *site.Site) error {
	started := time.Now()
	for {
		_, err := control.Send(ctx, s.Control(), control.Order{Do: control.Ping})
		if err == nil {
			return nil
		}
		running, err := runs(s)
		if err != nil {
			return err
		}
		// It takes its lock when it has begun.
		if !running && time.Since(started) > time.Minute {
			return errors.New("its keeper has ended")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tail is the end of a file, to be put below an error.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	const lines = 20
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}
