// Package hdfs is the source of datasets that are in HDFS: files, directories
// and patterns, as lines, records of one length, whole files, sequence files,
// or an LMDB database.
//
// Package namenode tells where blocks are, package datanode reads them. Each has its
// own deadlines; nothing in this package waits without one.
package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"rankfs/cache/blobs"
	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
)

// Config says how HDFS clusters are reached.
type Config struct {
	Conf    string // directory of core-site.xml and hdfs-site.xml; may be empty
	Host    string // the name of this host for other hosts; empty: the kernel's host name
	User    string // without Kerberos; empty: the one this process runs as
	ActFor  string // the user that User, or the Kerberos principal, acts for; empty: none
	Scratch string // directory for the findings of an interrupted scan
	Log     *slog.Logger

	// Copies are the blobs that local copies are kept as. If nil, sources that have
	// to be copied are refused.
	Copies *blobs.Store

	// Kerberos is how to log in where Conf demands it, which has Service and
	// Protection.
	Kerberos namenode.Kerberos

	// Timeout bounds each call of a namenode and each wait for a datanode's
	// next 64 KiB; zero leaves their own defaults.
	Timeout time.Duration

	// Review is how often all chunks of a source are looked for; zero is a
	// minute. A namenode takes longer than this to give up a datanode.
	Review time.Duration
}

// Clusters are the HDFS clusters that sources are in. Sources of one cluster
// share its connections and the state of its datanodes.
type Clusters struct {
	config  Config
	host    string
	here    []netip.Addr
	unknown error   // why here is not known
	copies  *copies // nil if there may be none

	mu struct {
		sync.Mutex
		byAuthority map[string]*cluster
	}
}

// A cluster is one HDFS.
type cluster struct {
	names    *namenode.Client
	locate   func(ctx context.Context, path string, off, n int64) (*namenode.Blocks, error) // of names
	data     *datanode.Client
	files    *shortcircuit.Client // nil if all blocks come over TCP
	noFiles  string               // then why
	guardian *guardian
}

// New returns clusters, and contacts none of them yet. It removes old findings of
// interrupted scans, which no scan has resumed, from Scratch.
func New(c Config) (*Clusters, error) {
	if err := readable(c.Kerberos.Keytab); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Review = cmp.Or(c.Review, time.Minute)
	host := c.Host
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	if err := sweep(c.Scratch, time.Now().Add(-keepFindings)); err != nil {
		c.Log.Warn("old findings of scans stay", "directory", c.Scratch, "cause", err)
	}
	k := &Clusters{config: c, host: host}
	if k.here, k.unknown = ownAddresses(); k.unknown != nil {
		c.Log.Warn("the addresses of this host are not known: which replicas are on it is told by its name alone", "host", host, "cause", k.unknown)
	}
	k.mu.byAuthority = make(map[string]*cluster)
	if c.Copies != nil {
		k.copies = newCopies(c.Copies, c.Log)
	}
	return k, nil
}

// ownAddresses returns the addresses of this host.
func ownAddresses() (here []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this host: %w", err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ip.IP); ok {
				here = append(here, addr.Unmap())
			}
		}
	}
	return here, nil
}

// Addresses says why the addresses of this host are not known; nil if they are.
// Without them a replica is taken for local only by the name of its host.
func (c *Clusters) Addresses() error { return c.unknown }

// Close ends all connections. No source is open any more.
func (c *Clusters) Close() error {
	if c.copies != nil {
		c.copies.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, k := range c.mu.byAuthority {
		if k.files != nil {
			k.files.Close()
		}
		errs = append(errs, k.names.Close())
	}
	clear(c.mu.byAuthority)
	return errors.Join(errs...)
}

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
	k := &cluster{names: names, locate: names.Locate, guardian: g}
	k.files, k.noFiles = c.files(conf.Data)
	k.data = datanode.New(datanode.Config{
		User: conf.User, Host: c.host, Here: c.here, Files: k.files, Corrupt: k.corrupt(c.config.Log),
		Guard: g.guard, Timeout: c.config.Timeout, Log: c.config.Log,
	})
	c.mu.byAuthority[authority] = k
	return k, nil
}

// files asks datanodes of this host for their blocks' files, where the
// configuration says so; else it says why not.
func (c *Clusters) files(conf namenode.Data) (files *shortcircuit.Client, why string) {
	switch {
	case !conf.ByFile:
		return nil, "dfs.client.read.shortcircuit is not true in the Hadoop configuration"
	case conf.Socket == "":
		return nil, "dfs.domain.socket.path is not set in the Hadoop configuration"
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

// Stats sums the counters of all datanodes, and tells how blocks of this host are read.
type Stats struct {
	datanode.Stats
	// LocalBlocks is "short-circuit", or "over TCP: " and why; empty if no cluster
	// was asked yet. If clusters differ it is that of one that is over TCP.
	LocalBlocks string
}

// Stats returns them.
func (c *Clusters) Stats() (s Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.mu.byAuthority {
		n := k.data.Snapshot()
		s.Bytes, s.Local, s.Files = s.Bytes+n.Bytes, s.Local+n.Local, s.Files+n.Files
		s.Corrupt, s.Failures = s.Corrupt+n.Corrupt, s.Failures+n.Failures
		s.Streams += n.Streams
		if way := k.localBlocks(); s.LocalBlocks == "" || s.LocalBlocks == byFile {
			s.LocalBlocks = way
		}
	}
	return s
}

const byFile = "short-circuit"

func (k *cluster) localBlocks() string {
	cause := k.noFiles
	if k.files != nil {
		cause = k.files.Snapshot().Cause
	}
	if cause != "" {
		return "over TCP: " + cause
	}
	return byFile
}

// A Way is a cluster whose namenodes are asked by WebHDFS: none answers by RPC.
type Way struct{ Authority, URL string }

// Web returns the clusters that are asked by WebHDFS, in order.
func (c *Clusters) Web() (all []Way) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for authority, k := range c.mu.byAuthority {
		if url := k.names.Web(); url != "" {
			all = append(all, Way{authority, url})
		}
	}
	slices.SortFunc(all, func(a, b Way) int { return cmp.Compare(a.Authority, b.Authority) })
	return all
}
