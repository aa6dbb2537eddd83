package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/mountns"
)

// idle is how long a cluster stays when no process holds it: the tests of the next
// package come within seconds.
const idle = 20 * time.Second

// keep is the keeper. It builds the cluster that its folder describes, answers
// when it is ready, and ends when it is told to or no process has held the
// cluster for a while.
func keep(args []string) error {
	if len(args) != 1 {
		return errors.New("use keeper keep DIR")
	}
	if err := shed(); err != nil {
		return err
	}
	s, err := site.Load(args[0])
	if err != nil {
		return err
	}
	// Processes that wait for the cluster try this lock now and then, for a moment.
	soon, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	lock, err := s.WaitLock(soon, site.Keeping, true)
	if err != nil {
		return fmt.Errorf("keep cluster %s: %w", s.Name, err)
	}
	defer lock.Close()
	ctx, cancel := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer cancel()
	d := newDaemons(s)
	defer d.killAll()
	holders, err := build(ctx, s, d)
	if err != nil {
		return err // what is on disk says why
	}
	// A host lives as long as its holder's stdin, which the garbage collector
	// would close as soon as nothing refers to it.
	defer runtime.KeepAlive(holders)
	alone, err := serve(ctx, cancel, s, d)
	d.killAll()
	err = errors.Join(err, os.RemoveAll(s.Dir))
	if alone != nil {
		alone.Close() // until here: a process that comes now starts another
	}
	return err
}

// shed closes the files that this process inherited: the keeper outlives the
// process that had them open, and some are locks. Only exec closes those that the
// Go runtime does not know of.
func shed() error {
	const done = "RANKFS_KEEPER_SHED"
	if os.Getenv(done) != "" {
		return os.Unsetenv(done)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what was inherited: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), done+"=1"))
}

// build makes the hosts and starts what runs on them.
func build(ctx context.Context, s *site.Site, d *daemons) ([]*holder, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("have mounts of its own: %w", err)
	}
	if err := mountns.LetGo(); err != nil {
		return nil, err
	}
	holders, err := buildHosts(s)
	if err != nil {
		return nil, err
	}
	if err := startHadoop(ctx, s, d); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Mkdir(s.Bin(), 0o755), os.Symlink(s.Keeper(), filepath.Join(s.Bin(), "hdfs"))); err != nil {
		return nil, err
	}
	if s.Pid, err = self(); err != nil {
		return nil, err
	}
	return holders, s.Save() // now with all pids
}

// buildHosts makes the hosts and the network between them.
func buildHosts(s *site.Site) (holders []*holder, err error) {
	if err := os.WriteFile(filepath.Join(s.Dir, "hosts.txt"), []byte(hostsFile(s)), 0o644); err != nil {
		return nil, err
	}
	holders = make([]*holder, len(s.Hosts))
	for i := range s.Hosts {
		if holders[i], err = startHost(s, &s.Hosts[i]); err != nil {
			return nil, err
		}
	}
	if err := buildNetwork(s, holders); err != nil {
		return nil, err
	}
	for _, h := range holders {
		if err := h.connect(); err != nil {
			return nil, err
		}
	}
	return holders, nil
}

// serve takes orders until the cluster is to end. If that is because no process uses
// it, alone is the lock that keeps others out.
func serve(ctx context.Context, cancel func(), s *site.Site, d *daemons) (alone *site.Lock, err error) {
	l, err := net.Listen("unix", s.Control())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	var asked atomic.Int64 // when the last order came, in nanoseconds
	unused := make(chan *site.Lock, 1)
	go func() {
		defer cancel()
		unused <- waitUnused(ctx, s, &asked)
	}()
	do := func(o control.Order) control.Answer {
		asked.Store(time.Now().UnixNano())
		if o.Do == control.Stop {
			cancel()
			return control.Answer{}
		}
		return d.do(o)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return <-unused, nil // closed by its end, and by nothing else
		}
		go control.Serve(conn, do)
	}
}

// waitUnused waits until no process has held the cluster or sent an order for a
// while, and then holds it alone, unless it is told to end before. A test that
// becomes a program on a host lets go of the cluster for a moment.
func waitUnused(ctx context.Context, s *site.Site, asked *atomic.Int64) (alone *site.Lock) {
	since := time.Now()
	for ctx.Err() == nil {
		unix.Nanosleep(&unix.Timespec{Nsec: 5e8}, nil)
		if _, err := os.Stat(s.Pinned()); err == nil {
			since = time.Now()
			continue
		}
		lock, err := s.TryLock(site.Holding, true)
		if err != nil {
			since = time.Now()
			continue
		}
		if at := time.Unix(0, asked.Load()); at.After(since) {
			since = at
		}
		if time.Since(since) > idle {
			return lock
		}
		lock.Close()
	}
	return nil
}
