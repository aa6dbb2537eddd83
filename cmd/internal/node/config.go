package node

import (
	"log/slog"

	"rankfs/cache/disks"
	"rankfs/fetch/hdfs/namenode"
)

// A Config is what a node needs to know.
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

func (c Config) kerberos() namenode.Kerberos {
	return namenode.Kerberos{Principal: c.Principal, Keytab: c.Keytab, Cache: c.TicketCache, Conf: c.Krb5Conf}
}
