package main

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	if err := format(ctx, s); err != nil {
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

// format gives all namenodes, and the edits that they share, the same empty namespace.
func format(ctx context.Context, s *site.Site) error {
	err := s.Home.Format(ctx, s.Edits())
	for _, h := range s.With(site.NameNode) {
		err = errors.Join(err, s.Home.Format(ctx, filepath.Join(s.HostDir(h.Name), "name")))
	}
	return err
}
