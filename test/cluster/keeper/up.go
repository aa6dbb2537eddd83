package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/hadoop"
)

// upTime bounds the start of a cluster, with the download of the jars.
const upTime = 15 * time.Minute

// variant is the name of the cluster that the command line means.
func variant(args []string) (string, error) {
	switch len(args) {
	case 0:
		return "plain", nil
	case 1:
		return args[0], nil
	}
	return "", errors.New(usage)
}

// up starts a cluster, or finds it, and has it stay.
func up(args []string) error {
	name, err := variant(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), upTime)
	defer cancel()
	c, err := cluster.Open(ctx, name)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Pin(); err != nil {
		return err
	}
	fmt.Print(guide(name, c))
	return nil
}

// guide is the text that tells a developer how to use the cluster.
func guide(name string, c *cluster.Cluster) string {
	var b strings.Builder
	dir := filepath.Dir(c.Conf())
	fmt.Fprintf(&b, "cluster %s is up until make hdfs-down\n\n", name)
	for _, h := range c.Hosts() {
		fmt.Fprintf(&b, "  %-8s %-12s %s\n", h.Name, h.IP, strings.Join(h.Daemons, " "))
	}
	fmt.Fprintf(&b, `
a shell on a host   %[1]s/keeper on client
one command         %[1]s/keeper on client hdfs dfs -ls /
more commands       hdfs dfsadmin -report, hdfs haadmin -getAllServiceState, hdfs fsck / -files -blocks
namenodes           hdfs://%[2]s/, that is %[3]s; WebHDFS %[4]s
configuration       HADOOP_CONF_DIR=%[5]s
logs                %[1]s/hosts/HOST/log
`, dir, c.Nameservice(), strings.Join(c.Addresses(), " "), strings.Join(c.WebAddresses(), " "), c.Conf())
	return b.String()
}

// down removes a cluster; tests that use it finish first.
func down(args []string) error {
	name, err := variant(args)
	if err != nil {
		return err
	}
	folder, err := hadoop.Folder()
	if err != nil {
		return err
	}
	s, err := site.New(name, hadoop.Home(filepath.Join(folder, "build")))
	if err != nil {
		return err
	}
	starting, err := s.TryLock(site.Starting, true)
	if err != nil {
		return fmt.Errorf("take down cluster %s: it is starting: %w; try again", name, err)
	}
	defer starting.Close()
	if err := os.Remove(s.Pinned()); err != nil && !os.IsNotExist(err) {
		return err
	}
	holding, err := s.TryLock(site.Holding, true)
	if errors.Is(err, site.ErrLocked) {
		fmt.Printf("cluster %s is in use; it ends some seconds after its last user\n", name)
		return nil
	}
	if err != nil {
		return err
	}
	defer holding.Close()
	return stop(s)
}

// stop ends the keeper and removes what one that was killed left.
func stop(s *site.Site) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// No keeper answers: there is none, or it is ending.
	_, asked := control.Send(ctx, s.Control(), control.Order{Do: control.Stop})
	gone, err := s.WaitLock(ctx, site.Keeping, true)
	if err != nil {
		return errors.Join(err, asked)
	}
	defer gone.Close()
	return os.RemoveAll(s.Dir)
}
