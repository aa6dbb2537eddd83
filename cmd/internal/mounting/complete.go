package mounting

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// Complete checks the options and makes every path in them absolute, so that
// the directory in which the command runs no longer matters.
func (o Options) Complete(dir string) (Options, string, error) {
	dir, err := mounts.Resolve(dir)
	if err != nil {
		return o, "", err
	}
	if o.State == "" {
		o.State = filepath.Join(stateRoot, escapePath(dir))
	}
	// A directory that the environment names may be of no use to this mount; one that
	// an option names must be readable.
	if o.hadoopConf != "" && o.hadoopConf != os.Getenv("HADOOP_CONF_DIR") {
		if _, err := os.ReadDir(o.hadoopConf); err != nil {
			return o, "", failure.Unread("hadoop-conf", o.hadoopConf, err)
		}
		if err := namenode.CheckConf(o.hadoopConf); err != nil {
			return o, "", err
		}
	}
	if o.login, err = o.login.complete(o.hdfsUser); err != nil {
		return o, "", err
	}
	if o.cluster, err = o.cluster.complete(); err != nil {
		return o, "", err
	}
	if o.nvme, err = completeNVMe(o.nvme); err != nil {
		return o, "", err
	}
	if o.poolNVMe != "" {
		disks, err := completeNVMe([]string{o.poolNVMe})
		if err != nil {
			return o, "", fmt.Errorf("pool-%w", err)
		}
		o.poolNVMe = disks[0]
	}
	if err := o.readable(); err != nil {
		return o, "", err
	}
	if err := o.resolve(); err != nil {
		return o, "", err
	}
	c, err := o.Config(dir)
	if err == nil {
		err = apart(c)
	}
	return o, dir, err
}

// apart refuses a directory for what a node keeps that lies in the mount, which hides it and
// would have the node wait for itself; and one that is to be of the NVMe tier and the state.
func apart(c node.Config) error {
	type use struct{ option, path string }
	uses := []use{{"state", c.State}}
	for _, disk := range c.NVMe {
		uses = append(uses, use{"nvme", disk.Path})
	}
	if c.PoolNVMe.Path != "" {
		uses = append(uses, use{"pool-nvme", c.PoolNVMe.Path})
	}
	state := ""
	for _, u := range uses {
		at, err := mounts.Resolve(u.path)
		switch {
		case err != nil: // why, is told when the directory is tried
		case mountinfo.IsBelow(at, c.Mount):
			return meta.Worded(meta.ErrInvalid, "%s directory %s lies in the mount point %s, which hides it; name one outside of it with --%[1]s", u.option, u.path, c.Mount)
		case u.option == "state":
			state = at
		case u.option == "nvme" && at == state:
			return meta.Worded(meta.ErrInvalid, "nvme directory %s is the state directory too; name another with --nvme", u.path)
		}
	}
	return nil
}

func completeNVMe(disks []string) ([]string, error) {
	disks = slices.Clone(disks)
	for i, disk := range disks {
		where, size, err := splitNVMe(disk)
		if err != nil {
			return nil, err
		}
		if where, err = filepath.Abs(where); err != nil {
			return nil, err
		}
		disks[i] = where + ":" + meta.FormatBytes(size)
	}
	return disks, nil
}

// Config turns complete options into what a node needs.
func (o Options) Config(dir string) (node.Config, error) {
	c := node.Config{
		Mount: dir, State: o.State, Private: o.private, NoPassthrough: o.noPassthrough,
		UID: o.uid, GID: o.gid, HadoopConf: o.hadoopConf, HDFSUser: o.hdfsUser,
		HDFSActFor: o.login.actFor, Keytab: o.login.keytab, Principal: o.login.principal,
		TicketCache: o.login.tickets(), Krb5Conf: o.login.conf,
		Host: o.cluster.host, Listen: o.cluster.listen, Join: o.cluster.join, Token: o.cluster.token,
	}
	var err error
	if c.Admins, err = groupID(o.adminGroup); err != nil {
		return c, err
	}
	umask, err := strconv.ParseUint(o.umask, 8, 32)
	if err != nil || umask > 0o777 {
		return c, meta.Worded(meta.ErrInvalid, "umask %q is not an octal number up to 777", o.umask)
	}
	c.Umask = uint32(umask)
	if o.ram == "" {
		c.RAMBytes = defaultRAM(os.DirFS("/"))
	} else {
		ram, err := meta.ParseBytes(o.ram)
		if err != nil {
			return c, fmt.Errorf("ram: %w", err)
		}
		c.RAMBytes = int64(ram)
	}
	if err := o.pool(&c); err != nil {
		return c, err
	}
	for _, disk := range o.nvme {
		where, size, err := splitNVMe(disk)
		if err != nil {
			return c, err
		}
		c.NVMe = append(c.NVMe, node.Disk{Path: where, Bytes: int64(size)})
	}
	if c.NVMeFloor, err = parseFloor(o.nvmeFloor); err != nil {
		return c, err
	}
	if c.CachePolicy = o.cachePolicy; c.CachePolicy != "" {
		if _, err := policy.New(c.CachePolicy); err != nil {
			return c, fmt.Errorf("cache %w", err)
		}
	}
	_, err = o.Level()
	return c, err
}

// pool says what the shuffle pool has, of memory that is known.
func (o Options) pool(c *node.Config) error {
	if o.poolRAM != "" {
		ram, err := meta.ParseBytes(o.poolRAM)
		if err != nil {
			return fmt.Errorf("pool-ram: %w", err)
		}
		switch c.PoolRAM = int64(ram); {
		case ram == 0:
			c.PoolRAM, c.PoolGuest = c.RAMBytes/guestPart, true
		case c.PoolRAM > c.RAMBytes:
			return meta.Worded(meta.ErrInvalid, "pool-ram of %s is more than the %s of --ram, of which it is a part: give less, or more to --ram",
				meta.FormatBytes(ram), meta.FormatBytes(uint64(c.RAMBytes)))
		}
	}
	if o.poolNVMe == "" {
		return nil
	}
	where, size, err := splitNVMe(o.poolNVMe)
	if err != nil {
		return fmt.Errorf("pool-%w", err)
	}
	if c.PoolRAM == 0 || c.PoolGuest {
		return meta.Worded(meta.ErrInvalid, "pool-nvme without pool-ram: what jobs write begins in memory; give --pool-ram SIZE")
	}
	c.PoolNVMe = node.Disk{Path: where, Bytes: int64(size)}
	return nil
}

// Check refuses complete options by which no mount can be made, before anything is.
func (o Options) Check(dir string) error {
	c, err := o.Config(dir)
	if err != nil {
		return err
	}
	return c.Check()
}

// Level is the level of the messages to write.
func (o Options) Level() (level slog.Level, err error) {
	if level.UnmarshalText([]byte(o.logLevel)) != nil {
		err = meta.Worded(meta.ErrInvalid, "log level %q is not one of debug, info, warn, error", o.logLevel)
	}
	return level, err
}

// guestPart is the part of --ram that a node without memory for the pool may have of what
// is written there, until other nodes have it.
const guestPart = 8

// splitNVMe reads DIR:SIZE. A directory may have colons in its name.
func splitNVMe(s string) (dir string, size uint64, err error) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, meta.Worded(meta.ErrInvalid, "nvme %q is not DIR:SIZE, as /nvme/rankfs:200GiB", s)
	}
	size, err = meta.ParseBytes(s[i+1:])
	if err != nil {
		return "", 0, fmt.Errorf("nvme %q: %w", s, err)
	}
	return s[:i], size, nil
}

// parseFloor reads SIZE, or N% of a file system.
func parseFloor(s string) (f node.Floor, err error) {
	number, percent := strings.CutSuffix(s, "%")
	if !percent {
		bytes, err := meta.ParseBytes(s)
		if err != nil {
			return f, fmt.Errorf("nvme floor: %w", err)
		}
		f.Bytes = int64(bytes)
		return f, nil
	}
	f.Percent, err = strconv.ParseFloat(number, 64)
	if err != nil || !(f.Percent >= 0 && f.Percent < 100) {
		return node.Floor{}, meta.Worded(meta.ErrInvalid, "nvme floor %q is neither a size, as 50GiB, nor a part of the disk, as 5%%", s)
	}
	return f, nil
}
