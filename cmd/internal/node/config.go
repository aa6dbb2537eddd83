package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/shuffle/access"
	"rankfs/shuffle/pool"
)

// A Config configures a node.
type Config struct {
	Mount, State      string
	RAMBytes          int64
	NVMe              []Disk // for slabs and copies of files; without any there is no such tier
	NVMeFloor         Floor
	Private           bool    // other users can neither read the mount nor ask the daemon
	Admins            *uint32 // a group whose members may change things, as root may
	NoPassthrough     bool
	UID, GID, Umask   uint32
	RunDir, Version   string
	HadoopConf        string // directory; empty: HDFS is named by HOST:PORT alone
	HDFSUser          string // without Kerberos; empty: the user that runs the daemon
	HDFSActFor        string // the user for whom HDFSUser or the Kerberos principal acts; empty: none
	Keytab, Principal string // to log in with; empty: with TicketCache
	TicketCache       string // empty: that of kinit
	Krb5Conf          string // empty: /etc/krb5.conf
	Host              string // what others call this host; empty: as it calls itself
	Listen            string // HOST:PORT for other nodes; empty: loopback, any port
	Join, Token       string // a node of the cluster to join, and what lets this one in
	CachePolicy       string // of cache/policy.Names; empty: the first
	PoolRAM           int64  // what all jobs of the shuffle pool may have of RAMBytes; zero: this node has no pool
	PoolGuest         bool   // what is written to the pool here goes to other nodes
	PoolNVMe          Disk   // for files of the shuffle pool beside those; zero: none
	Log               *slog.Logger
}

// A Disk is a directory on a local disk and its budget, a Floor what is left
// free of its file system.
type (
	Disk  = disks.Dir
	Floor = disks.Floor
)

// nvmeBytes is the budget of all disks.
func (c Config) nvmeBytes() (bytes int64) {
	for _, d := range c.NVMe {
		bytes += d.Bytes
	}
	return bytes
}

// Check refuses what no node can be made of, before anything is made: a mount with other
// options the next time would find a cluster of one there.
func (c Config) Check() error {
	if err := (cache.Config{RAMBytes: c.RAMBytes, NVMe: c.NVMe}).Check(); err != nil {
		return err
	}
	_, _, err := c.belongs()
	return err
}

// try refuses what no node can be made of now, on these disks and by this process, before
// anything is: one that has joined a cluster would be listed there and never come.
func (c Config) try() error {
	err := disks.Config{Dirs: c.NVMe}.Try()
	if err == nil && c.PoolNVMe.Path != "" {
		err = pool.Disk{Dir: c.PoolNVMe.Path}.Try(c.pool())
	}
	if err == nil && c.PoolRAM > 0 {
		err = access.TryLeases()
	}
	return err
}

// belongs is the cluster that the state directory is of, or else the token by which to
// join the one that is named; neither, if one is to be founded.
func (c Config) belongs() (a *trust.Authority, token trust.Token, err error) {
	a, err = trust.OpenAuthority(c.trust())
	switch {
	case err == nil && c.Join != "":
		// A systemd unit that has joined once still names a token of this cluster, or none.
		// With the token of another cluster this node is meant to be of that one.
		if c.Token == "" {
			return a, token, nil
		}
		t, err := trust.ParseToken(c.Token)
		if err != nil {
			return nil, token, fmt.Errorf("join %s: this node is of a cluster already, by the state in %s: leave out --join, or give a token as it was made: %w", c.Join, c.State, err)
		}
		if t.Authority() != a.Fingerprint() {
			return nil, token, meta.Worded(meta.ErrExist, "join %s: the token is of another cluster than this node, whose state is in %s: leave out --join, or mount with another --state DIR",
				c.Join, c.State)
		}
		return a, token, nil
	case err == nil:
		return a, token, nil
	case meta.Impossible(err):
		return nil, token, meta.Worded(meta.ErrInvalid, "state directory %w; choose another with --state", meta.AtPath(c.State, err))
	case errors.Is(err, fs.ErrPermission):
		return nil, token, fmt.Errorf("state directory %w; choose another with --state", meta.AtPath(c.State, err))
	case !errors.Is(err, meta.ErrNotExist):
		return nil, token, err
	case c.Join == "":
		return nil, token, nil
	case c.Token == "":
		return nil, token, fmt.Errorf("join %s: token %w: it is missing; get one on that node with: rankfs token create", c.Join, meta.ErrInvalid)
	}
	token, err = trust.ParseToken(c.Token)
	if err == nil && c.Listen == "" {
		err = meta.Worded(meta.ErrInvalid, "join %s: the other nodes have to reach this one: give --listen HOST:PORT with an address of this host", c.Join)
	}
	return nil, token, err
}

// trust is the directory of the authority, and of what this node proves itself by.
func (c Config) trust() string { return filepath.Join(c.State, "trust") }

// pool is the directory of what the shuffle pool has of its own.
func (c Config) pool() string { return filepath.Join(c.State, "pool") }

// indexing is the directory of what is found for indexes, of this node and of others.
func (c Config) indexing() string { return filepath.Join(c.State, "indexing") }

func (c Config) kerberos() namenode.Kerberos {
	return namenode.Kerberos{Principal: c.Principal, Keytab: c.Keytab, Cache: c.TicketCache, Conf: c.Krb5Conf}
}
