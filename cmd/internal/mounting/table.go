package mounting

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// An option of a mount is a row of the table: its flag, its key in fstab and the
// argument that hands it to a background mount all come from here.
type option struct {
	name   string
	value  any    // *string, *uint32, *bool, or *[]string of one that may come again
	usage  string // of the flag; empty: it is hidden
	path   bool   // absolute in fstab, made so elsewhere
	prefix string // which a path may have
	must   bool   // it names a file that must be there, if it is not from the environment
	notTab bool   // fstab has it not
	notArg bool   // a background mount is not told of it by an argument
}

// table has a row for each option of o, in the order of the help.
func (o *Options) table() []option {
	l, m, policies := &o.login, &o.cluster, policy.Names()
	return []option{
		{name: "state", value: &o.State, path: true, usage: "keep indexes and the log in `DIR` (default one in " + stateRoot + ", named for the mount point)"},
		{name: "nvme", value: &o.nvme, path: true, usage: "keep batches that leave memory on a disk: `DIR:SIZE`, as /nvme/rankfs:200GiB; once for each disk"},
		{name: "nvme-floor", value: &o.nvmeFloor, usage: "leave `SIZE` or N% of each of those disks free"},
		{name: "ram", value: &o.ram, usage: "keep batches in memory up to `SIZE`, as 16GiB (default a quarter of the memory)"},
		{name: "pool-ram", value: &o.poolRAM, usage: "have a shuffle pool, whose jobs may keep `SIZE` of that together; with 0 other nodes keep it"},
		{name: "pool-nvme", value: &o.poolNVMe, path: true, usage: "keep copies of the shuffle pool, and what memory has no room for, on a disk: `DIR:SIZE`"},
		{name: "cache-policy", value: &o.cachePolicy, usage: "decide what is kept by the policy `NAME`, one of " + strings.Join(policies, ", ") + " (default " + policies[0] + ")"},
		{name: "private", value: &o.private, usage: "let no other user read the mount, or ask its daemon"},
		{name: "admin-group", value: &o.adminGroup, usage: "let members of `GROUP` change what only root may change otherwise"},
		{name: "uid", value: &o.uid, usage: "user `ID` that owns all files (default: the one who mounts)"},
		{name: "gid", value: &o.gid, usage: "group `ID` of all files (default: that of the one who mounts)"},
		{name: "umask", value: &o.umask, usage: "`MODE` bits that no file has, in octal"},
		{name: "hadoop-conf", value: &o.hadoopConf, path: true, usage: "read how to reach HDFS from the files in `DIR` (default $HADOOP_CONF_DIR)"},
		{name: "hdfs-user", value: &o.hdfsUser, usage: "be `USER` in an HDFS without Kerberos (default: the one who mounts)"},
		{name: "hdfs-keytab", value: &l.keytab, path: true, must: true, usage: "log in to HDFS with the key in `FILE`, as --hdfs-principal"},
		{name: "hdfs-principal", value: &l.principal, usage: "log in to HDFS as `NAME`, as rankfs/node1@EXAMPLE.COM"},
		{name: "hdfs-cache", value: &l.cache, path: true, prefix: "FILE:", must: true, usage: "log in to HDFS with the tickets in `FILE` (default $KRB5CCNAME, else what kinit writes)"},
		{name: "hdfs-act-for", value: &l.actFor, usage: "be `USER` in HDFS, for whom the one who logs in may act"},
		{name: "krb5-conf", value: &l.conf, path: true, must: true, usage: "find the KDC by `FILE` (default $KRB5_CONFIG, else /etc/krb5.conf)"},
		{name: "host", value: &m.host, usage: "be known to others as the host `NAME`, as HDFS calls it (default: its host name)"},
		{name: "listen", value: &m.listen, usage: "be reached by other nodes at `HOST:PORT` (default: on loopback only, at any port)"},
		{name: "join", value: &m.join, usage: "join the cluster of the node at `HOST:PORT`, if this node is of none"},
		// All users can read fstab and the arguments of a process.
		{name: "token", value: &m.token, notTab: true, notArg: true, usage: "be let in by `TOKEN`, from: rankfs token create (default $" + tokenVariable + ")"},
		{name: "token-file", value: &m.tokenFile, path: true, notArg: true, usage: "read the token from `FILE`"},
		{name: "log-level", value: &o.logLevel, usage: "write messages from `LEVEL` on: debug, info, warn, error"},
		{name: "no-passthrough", value: &o.noPassthrough, notTab: true}, // the daemon serves all reads, to compare
	}
}

// Flags lets o be set by flags.
func (o *Options) Flags(f *pflag.FlagSet) {
	for _, row := range o.table() {
		switch p := row.value.(type) {
		case *string:
			f.StringVar(p, row.name, *p, row.usage)
		case *uint32:
			f.Uint32Var(p, row.name, *p, row.usage)
		case *bool:
			f.BoolVar(p, row.name, *p, row.usage)
		case *[]string:
			f.StringArrayVar(p, row.name, *p, row.usage)
		}
		f.Lookup(row.name).Hidden = row.usage == ""
	}
	f.Bool("allow-other", false, "")
	f.Lookup("allow-other").Hidden = true // it was needed once, and stands in scripts
}

var errUnknownOption = errors.New("there is no such option")

// set takes one option of fstab.
func (o *Options) set(key, value string, hasValue bool) (err error) {
	rows := o.table()
	i := slices.IndexFunc(rows, func(row option) bool { return row.name == key && !row.notTab })
	if i < 0 {
		return errUnknownOption
	}
	row := rows[i]
	if _, alone := row.value.(*bool); alone == hasValue {
		return errUnknownOption
	}
	value = strings.TrimPrefix(value, row.prefix)
	if row.path {
		if value, err = absolute(value); err != nil {
			return err
		}
	}
	switch p := row.value.(type) {
	case *string:
		*p = value
	case *uint32:
		*p, err = parseID(value)
	case *bool:
		*p = true
	case *[]string:
		*p = append(*p, value)
	}
	return err
}

// resolve makes all paths absolute.
func (o *Options) resolve() (err error) {
	for _, row := range o.table() {
		p, one := row.value.(*string)
		if !row.path || !one {
			continue
		}
		if *p = strings.TrimPrefix(*p, row.prefix); *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	return nil
}

// readable refuses a file that an option names and that cannot be read. One that the
// environment names may be of no use to this mount.
func (o *Options) readable() error {
	usual := DefaultOptions()
	before := usual.table()
	for i, row := range o.table() {
		path := ""
		if row.must {
			path = strings.TrimPrefix(*row.value.(*string), row.prefix)
		}
		if path == "" || path == *before[i].value.(*string) {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return failure.Unread(row.name, path, err)
		}
		f.Close()
	}
	return nil
}

// args spells complete options as the arguments of the rankfs mount that
// tells its parent on descriptor 3, the first that a child inherits, how it went.
// What is as the child finds it anyway is left out.
func (o Options) args(dir string) []string {
	args := []string{"mount", "--ready-fd=3"}
	of := DefaultOptions()
	for i, row := range of.table() {
		if mine := o.table()[i]; !row.notArg && !slices.Equal(mine.texts(), row.texts()) {
			for _, text := range mine.texts() {
				args = append(args, "--"+row.name+"="+text)
			}
		}
	}
	return append(args, "--", dir)
}

// texts are the values of an option as arguments have them.
func (row option) texts() []string {
	switch p := row.value.(type) {
	case *string:
		return []string{*p}
	case *uint32:
		return []string{strconv.FormatUint(uint64(*p), 10)}
	case *bool:
		return []string{strconv.FormatBool(*p)}
	case *[]string:
		return *p
	}
	return nil
}

// absolute refuses any other path: fstab has no directory of its own.
func absolute(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		return "", meta.Worded(meta.ErrInvalid, "%q is not valid: use a path that starts with /", s)
	}
	return s, nil
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, meta.Worded(meta.ErrInvalid, "%q is not valid: use a number", s)
	}
	return uint32(n), nil
}

// DefaultOptions are the options of a mount for which nothing was written.
func DefaultOptions() Options {
	return Options{
		uid:      uint32(os.Getuid()),
		gid:      uint32(os.Getgid()),
		umask:    "022", // as files that others make
		logLevel: "info",
		// Other programs fill disks too, and file systems are slow to the last byte.
		nvmeFloor: "5%",

		hadoopConf: os.Getenv("HADOOP_CONF_DIR"),
		login:      defaultLogin(),
	}
}
