package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"rankfs/test/cluster/internal/health"
	"rankfs/test/cluster/internal/rpc"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
)

// startHadoop starts HDFS when no other one is starting.
func startHadoop(ctx context.Context, s *site.Site, d *daemons) error {
	if len(s.With(site.NameNode)) == 0 {
		return nil
	}
	done, err := hadoop.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, hadoop.StartTime)
	defer cancel()
	watch := hadoop.NewWatch()
	if err := startDaemons(ctx, s, d); err != nil {
		return fmt.Errorf("%w; %v", err, watch)
	}
	return nil
}

// startDaemons starts all daemons at once and makes the first namenode active.
func startDaemons(ctx context.Context, s *site.Site, d *daemons) error {
	if err := s.WriteConf(); err != nil {
		return err
	}
	if err := format(s); err != nil {
		return err
	}
	for _, h := range s.Hosts {
		for _, name := range h.Daemons {
			if err := d.start(place{h.Name, name}, false); err != nil {
				return err
			}
		}
	}
	first := s.With(site.NameNode)[0]
	ctx, cancelCause := context.WithCancelCause(ctx)
	d.onEnd(cancelCause)
	defer d.onEnd(nil)
	var dialer net.Dialer
	name := rpc.Daemon{Dial: dialer.DialContext, Address: fmt.Sprintf("%s:%d", first.IP, site.NameRPC)}
	if err := eventually.Until(ctx, func() error { return name.Active(ctx) }); err != nil {
		return err
	}
	return health.Wait(ctx, dialer.DialContext, s)
}

// format makes the empty namespace, and gives all namenodes the same.
func format(s *site.Site) error {
	names := s.With(site.NameNode)
	first := filepath.Join(s.HostDir(names[0].Name), "name")
	if err := tool(s, names[0].Name, site.Classes[site.NameNode], "-format", "-force", "-nonInteractive"); err != nil {
		return err
	}
	for _, h := range names[1:] {
		if err := os.CopyFS(filepath.Join(s.HostDir(h.Name), "name"), os.DirFS(first)); err != nil {
			return err
		}
	}
	return nil
}

// tool runs one of Hadoop's programs on a host.
func tool(s *site.Site, host, class string, args ...string) error {
	c, err := command(s, host, s.Java(host, hadoop.ToolOptions, class, args...))
	if err != nil {
		return err
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s %v: %w: %s", class, args, err, out)
	}
	return nil
}
