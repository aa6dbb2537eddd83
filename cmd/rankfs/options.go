package main

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/meta"
)

// stateRoot holds the state directories of mounts that were not given one.
const stateRoot = "/var/lib/rankfs"

// mountOptions are those of a mount as a person wrote them, whether as flags
// or in fstab.
type mountOptions struct {
	state         string
	nvme          []string // DIR:SIZE, for what leaves memory and costs more to fetch
	nvmeFloor     string   // SIZE or N%
	ram           string
	cachePolicy   string // empty: the first
	private       bool   // other users can neither read the mount nor ask its daemon
	adminGroup    string // name or number; empty: none
	noPassthrough bool
	uid, gid      uint32
	umask         string // octal
	logLevel      string
	hadoopConf    string // directory
	hdfsUser      string
	login         login
	cluster       membership
}

func defaultMountOptions() mountOptions {
	return mountOptions{
		uid:      uint32(os.Getuid()),
		gid:      uint32(os.Getgid()),
		umask:    "022", // as files that anybody else made
		logLevel: "info",
		// Others fill disks too, and file systems are slow to the last byte.
		nvmeFloor: "5%",

		hadoopConf: os.Getenv("HADOOP_CONF_DIR"),
		login:      defaultLogin(),
	}
}

// complete checks the options and makes every path in them absolute, so that
// the directory in which the command runs no longer matters.
func (o mountOptions) complete(dir string) (mountOptions, string, error) {
	dir, err := mounts.Resolve(dir)
	if err != nil {
		return o, "", err
	}
	if o.state == "" {
		o.state = filepath.Join(stateRoot, escapePath(dir))
	}
	if o.state, err = filepath.Abs(o.state); err != nil {
		return o, "", err
	}
	if o.hadoopConf != "" {
		// What the environment says may be of no use to this mount; what a person says is.
		if _, err := os.ReadDir(o.hadoopConf); err != nil && o.hadoopConf != os.Getenv("HADOOP_CONF_DIR") {
			return o, "", unread("hadoop-conf", o.hadoopConf, err)
		}
		if o.hadoopConf, err = filepath.Abs(o.hadoopConf); err != nil {
			return o, "", err
		}
	}
	if o.login, err = o.login.complete(o.hdfsUser); err != nil {
		return o, "", err
	}
	if o.cluster, err = o.cluster.complete(); err != nil {
		return o, "", err
	}
	o.nvme = slices.Clone(o.nvme)
	for i, disk := range o.nvme {
		where, size, err := splitNVMe(disk)
		if err != nil {
			return o, "", err
		}
		if where, err = filepath.Abs(where); err != nil {
			return o, "", err
		}
		o.nvme[i] = where + ":" + meta.FormatBytes(size)
	}
	_, err = o.config(dir)
	return o, dir, err
}

// config turns complete options into what a node needs.
func (o mountOptions) config(dir string) (node.Config, error) {
	c := node.Config{
		Mount: dir, State: o.state, Private: o.private, NoPassthrough: o.noPassthrough,
		UID: o.uid, GID: o.gid, Version: version(), HadoopConf: o.hadoopConf, HDFSUser: o.hdfsUser,
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
		return c, failf(meta.ErrInvalid, "umask %q is not an octal number up to 777", o.umask)
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
	_, err = o.level()
	return c, err
}

func (o mountOptions) level() (level slog.Level, err error) {
	if level.UnmarshalText([]byte(o.logLevel)) != nil {
		err = failf(meta.ErrInvalid, "log level %q is not one of debug, info, warn, error", o.logLevel)
	}
	return level, err
}

// args spells complete options as the arguments of the rankfs mount that
// tells its parent on descriptor 3, the first that a child inherits, how it went.
func (o mountOptions) args(dir string) []string {
	args := []string{"mount", "--ready-fd=3", "--state=" + o.state,
		fmt.Sprintf("--uid=%d", o.uid), fmt.Sprintf("--gid=%d", o.gid),
		"--umask=" + o.umask, "--log-level=" + o.logLevel, "--hadoop-conf=" + o.hadoopConf,
		"--nvme-floor=" + o.nvmeFloor}
	for _, disk := range o.nvme {
		args = append(args, "--nvme="+disk)
	}
	if o.ram != "" {
		args = append(args, "--ram="+o.ram)
	}
	if o.cachePolicy != "" {
		args = append(args, "--cache-policy="+o.cachePolicy)
	}
	if o.hdfsUser != "" {
		args = append(args, "--hdfs-user="+o.hdfsUser)
	}
	args = append(args, o.login.args()...)
	args = append(args, o.cluster.args()...)
	if o.private {
		args = append(args, "--private")
	}
	if o.adminGroup != "" {
		args = append(args, "--admin-group="+o.adminGroup)
	}
	if o.noPassthrough {
		args = append(args, "--no-passthrough")
	}
	return append(args, "--", dir)
}

// splitNVMe reads DIR:SIZE. A directory may have colons in its name.
func splitNVMe(s string) (dir string, size uint64, err error) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, failf(meta.ErrInvalid, "nvme %q is not DIR:SIZE, as /nvme/rankfs:200GiB", s)
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
		return node.Floor{}, failf(meta.ErrInvalid, "nvme floor %q is neither a size, as 50GiB, nor a part of the disk, as 5%%", s)
	}
	return f, nil
}

// escapePath makes one file name of a path, as systemd-escape does: readable,
// and different for different paths.
func escapePath(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return "-"
	}
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		plain := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == ':' || c == '.' && i > 0
		switch {
		case c == '/':
			b.WriteByte('-')
		case plain:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	if b.Len() > 255 { // NAME_MAX
		return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))
	}
	return b.String()
}
