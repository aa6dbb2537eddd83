package hdfs

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta"
)

// cluster returns the one that a URI's authority names.
func (c *Clusters) cluster(authority string) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.mu.byAuthority[authority]; k != nil {
		return k, nil
	}
	conf, err := namenode.FromConf(c.config.Conf, authority)
	if err != nil {
		return nil, err
	}
	if err := c.identify(&conf); err != nil {
		return nil, err
	}
	allowed, err := protections(conf.Data.Protection)
	if err != nil {
		return nil, err
	}
	conf.Timeout, conf.Log = c.config.Timeout, c.config.Log
	names, err := namenode.New(conf)
	if err != nil {
		return nil, err
	}
	g := newGuardian(names, conf.Data.Encrypt, allowed)
	k := &cluster{names: names, user: userOf(conf), locate: names.Locate, guardian: g}
	k.files, k.noFiles = c.files(conf.Data)
	k.data = datanode.New(datanode.Config{
		User: conf.User, Host: c.host, Here: c.here, Files: k.files, Corrupt: k.corrupt(c.config.Log),
		Guard: g.guard, Timeout: c.config.Timeout, Log: c.config.Log,
	})
	c.mu.byAuthority[authority] = k
	return k, nil
}

// configured is the cluster of an authority that the configuration names, or that was
// asked before.
func (c *Clusters) configured(authority string) (*cluster, error) {
	c.mu.Lock()
	k := c.mu.byAuthority[authority]
	c.mu.Unlock()
	if k != nil {
		return k, nil
	}
	conf, err := namenode.FromConf(c.config.Conf, authority)
	if err != nil {
		return nil, err
	}
	if !conf.Named {
		return nil, meta.Worded(meta.ErrDenied, "the Hadoop configuration of this node names no HDFS %q", authority)
	}
	return c.cluster(authority)
}

// files asks datanodes of this host for their blocks' files, where the
// configuration says so; else it says why not.
func (c *Clusters) files(conf namenode.Data) (files *shortcircuit.Client, why string) {
	switch {
	case !conf.ByFile:
		return nil, "dfs.client.read.shortcircuit is not true in the Hadoop configuration"
	case !filepath.IsAbs(conf.Socket): // nor set, or below whatever directory the daemon began in
		why = "dfs.domain.socket.path is not set in the Hadoop configuration"
		if conf.Socket != "" {
			why = fmt.Sprintf("dfs.domain.socket.path in the Hadoop configuration is %s: name an absolute path", conf.Socket)
		}
		c.config.Log.Warn("local blocks come over TCP, though dfs.client.read.shortcircuit is true", "cause", why)
		return nil, why
	}
	return shortcircuit.New(shortcircuit.Config{Path: conf.Socket, Log: c.config.Log}), ""
}

// corrupt returns a function that reports a corrupt replica to the namenode.
func (k *cluster) corrupt(log *slog.Logger) func(context.Context, namenode.Block, namenode.Replica) {
	return func(ctx context.Context, b namenode.Block, r namenode.Replica) {
		if err := k.names.ReportCorrupt(ctx, b, r.ID); err != nil {
			log.Warn("the namenode was not told of a corrupt replica", "block", b.ID, "datanode", r.Host, "cause", err)
		}
	}
}
