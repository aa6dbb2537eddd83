package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/fetch/splits"
	"rankfs/meta"
)

// Config says how HDFS clusters are reached.
type Config struct {
	Conf    string // directory of core-site.xml and hdfs-site.xml; may be empty
	Host    string // the name of this host for other hosts; empty: the kernel's host name
	User    string // without Kerberos; empty: the one this process runs as
	ActFor  string // the user that User, or the Kerberos principal, acts for; empty: none
	Scratch string // directory for the findings of an interrupted scan
	Log     *slog.Logger

	// Copies has the copies of sources that have to be copied; Clusters closes it. If nil,
	// these are refused.
	Copies Copies

	// Kerberos is the login where Conf demands it, which has Service and
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
// share its connections and the state of its datanodes. The lock guards the table, and is
// held while a cluster is set up or ended; what is in one has locks of its own.
type Clusters struct {
	config  Config
	host    string
	here    []netip.Addr
	unknown error // why here is not known

	mu struct {
		sync.Mutex
		byAuthority map[string]*cluster
	}
}

// A cluster is one HDFS.
type cluster struct {
	names *namenode.Client
	// user is the one that files are read as; empty if only the ticket says it.
	user     string
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
	if err := splits.Sweep(c.Scratch); err != nil {
		c.Log.Warn("old findings of scans stay", "directory", c.Scratch, "cause", err)
	}
	k := &Clusters{config: c, host: host}
	if k.here, k.unknown = ownAddresses(); k.unknown != nil {
		c.Log.Warn("the addresses of this host are not known: which replicas are on it is told by its name alone", "host", host, "cause", k.unknown)
	}
	k.mu.byAuthority = make(map[string]*cluster)
	return k, nil
}

// readable reports whether a file, if one is named, can be read: a daemon
// without its keys is better not started.
func readable(keytab string) error {
	if keytab == "" {
		return nil
	}
	f, err := os.Open(keytab)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("keytab %s %w; name one that this user may read", keytab, meta.ErrNotExist)
	case err != nil:
		return fmt.Errorf("keytab: %w; name one that this user may read", err)
	}
	return f.Close()
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
	if c.config.Copies != nil {
		c.config.Copies.Close()
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

// Stats sums the counters of all datanodes, and tells how blocks of this host are read.
type Stats struct {
	datanode.Stats
	// LocalBlocks says how blocks of this host are read: "short-circuit", or "over TCP: " and
	// why, or both, of some blocks each; that none was read yet; or nothing, if there is no
	// cluster. Of several clusters it is that of one where blocks come over TCP, if one is.
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
		switch way := k.localBlocks(); s.LocalBlocks {
		case "", notAsked:
			s.LocalBlocks = way
		case byFile:
			if way != notAsked {
				s.LocalBlocks = way
			}
		}
	}
	return s
}

const notAsked, byFile, overTCP = "none was asked for yet", "short-circuit", "over TCP: "

func (k *cluster) localBlocks() string {
	if k.files == nil {
		return overTCP + k.noFiles
	}
	switch s := k.files.Snapshot(); {
	case !s.Asked:
		return notAsked
	case s.Cause == "":
		return byFile
	case s.Refused == 1:
		return fmt.Sprintf("%s; 1 block %s%s", byFile, overTCP, s.Cause)
	case s.Refused > 1:
		return fmt.Sprintf("%s; %d blocks %s%s", byFile, s.Refused, overTCP, s.Cause)
	default:
		return overTCP + s.Cause
	}
}

// Outage is why no namenode of a cluster answers, nil if one does or none was asked yet.
func (c *Clusters) Outage(authority string) error {
	return c.ofNames(authority, (*namenode.Client).Outage)
}

// NoTicket is why this node has no Kerberos ticket for a cluster, nil if it has one or wants
// none.
func (c *Clusters) NoTicket(authority string) error {
	return c.ofNames(authority, (*namenode.Client).NoTicket)
}

// ofNames calls the client of a cluster's namenodes; nil if there is none yet.
func (c *Clusters) ofNames(authority string, what func(*namenode.Client) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.mu.byAuthority[authority]; k != nil {
		return what(k.names)
	}
	return nil
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
