package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rankfs/meta"
)

// helperName is what mount(8) calls for mount -t rankfs.
const helperName = "mount.rankfs"

// The exit codes of mount(8), which a helper shares.
const (
	mountUsage   = 1
	mountStopped = 8
	mountFailed  = 32
)

// A helperCall is what mount(8) asks of its helper.
type helperCall struct {
	dir     string
	fake    bool // check everything, mount nothing
	sloppy  bool // tolerate options that are unknown
	verbose bool
	options mountOptions
}

// helper is mount.rankfs: always in the background, with the codes of mount(8).
func (p *program) helper(ctx context.Context, args []string) int {
	call, err := parseHelper(args)
	if err == nil {
		err = p.mountFor(ctx, call)
	}
	switch code := p.report(err); code {
	case exitOK:
		return 0
	case exitUsage:
		return mountUsage
	case exitStopped:
		return mountStopped
	}
	return mountFailed
}

func (p *program) mountFor(ctx context.Context, call helperCall) error {
	o, dir, err := call.options.complete(call.dir)
	if err != nil || call.fake {
		return err
	}
	if err := mayMount(dir); err != nil {
		return err
	}
	m, err := p.mountBehind(ctx, o, dir)
	if err == nil && call.verbose {
		m.text(p.out)
	}
	return err
}

// parseHelper reads SPEC DIR [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS].
// SPEC is whatever fstab has there, often none.
func parseHelper(args []string) (helperCall, error) {
	call := helperCall{options: defaultMountOptions()}
	var names, options []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if len(arg) < 2 || arg[0] != '-' {
			names = append(names, arg)
			continue
		}
		for i := 1; i < len(arg); i++ {
			switch c := arg[i]; c {
			case 'f':
				call.fake = true
			case 's':
				call.sloppy = true
			case 'v':
				call.verbose = true
			case 'n': // writes no mtab anyway
			case 'o', 't', 'N':
				value := arg[i+1:]
				if value == "" {
					if len(args) == 0 {
						return call, helperUsage("-%c needs a value", c)
					}
					value, args = args[0], args[1:]
				}
				i = len(arg)
				switch c {
				case 'o':
					options = append(options, value)
				case 'N':
					return call, helperUsage("-N is not supported: enter the namespace with nsenter first")
				}
			default:
				return call, helperUsage("no such option: -%c", c)
			}
		}
	}
	if len(names) != 2 {
		return call, helperUsage("want SPEC and DIR, got %q", names)
	}
	call.dir = names[1]
	return call, call.set(strings.Join(options, ","))
}

func helperUsage(format string, args ...any) error {
	return hint(failf(errUsage, helperName+": "+format, args...),
		"use: mount -t rankfs none DIR -o state=DIR,nvme=DIR:SIZE,ram=SIZE")
}

// set takes the options of -o.
func (call *helperCall) set(text string) error {
	options, err := splitOptions(text)
	if err != nil {
		return err
	}
	for _, option := range options {
		err := call.options.set(option)
		if errors.Is(err, errUnknownOption) && call.sloppy {
			continue
		}
		if err != nil {
			return helperUsage("option %q: %v", option, err)
		}
	}
	return nil
}

// splitOptions splits at commas that are not within double quotes, and takes
// the quotes away.
func splitOptions(text string) (options []string, err error) {
	var b strings.Builder
	quoted := false
	flush := func() {
		if b.Len() > 0 {
			options = append(options, b.String())
		}
		b.Reset()
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			flush()
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return nil, helperUsage("options %q: a quote is not closed", text)
	}
	flush()
	return options, nil
}

var errUnknownOption = errors.New("there is no such option")

// set takes one option of fstab.
func (o *mountOptions) set(option string) (err error) {
	key, value, hasValue := strings.Cut(option, "=")
	switch {
	case isGeneric(key):
		return nil
	case option == "allow_other": // as every mount that is not private
		return nil
	case option == "private":
		o.private = true
		return nil
	case !hasValue:
		return errUnknownOption
	}
	switch key {
	case "state":
		o.state, err = absolute(value)
	case "nvme":
		value, err = absolute(value)
		o.nvme = append(o.nvme, value)
	case "nvme-floor":
		o.nvmeFloor = value
	case "ram":
		o.ram = value
	case "cache-policy":
		o.cachePolicy = value
	case "admin-group":
		o.adminGroup = value
	case "umask":
		o.umask = value
	case "uid":
		o.uid, err = parseID(value)
	case "gid":
		o.gid, err = parseID(value)
	case "hadoop-conf":
		o.hadoopConf, err = absolute(value)
	case "hdfs-user":
		o.hdfsUser = value
	case "log-level":
		o.logLevel = value
	default:
		err := o.login.set(key, value)
		if errors.Is(err, errUnknownOption) {
			err = o.cluster.set(key, value)
		}
		return err
	}
	return err
}

// isGeneric reports whether an option is for mount(8) or systemd, or holds
// for every rankfs anyway. One is wrong and still here: mount(8) adds rw to
// whatever does not say ro.
func isGeneric(key string) bool {
	switch key {
	case "defaults", "ro", "rw", "auto", "noauto", "nofail", "_netdev",
		"user", "users", "nouser", "owner", "group", "comment",
		"nosuid", "nodev", "noexec", "exec", "async", "silent", "loud",
		"atime", "noatime", "nodiratime", "relatime", "norelatime":
		return true
	}
	return strings.HasPrefix(key, "x-") || strings.HasPrefix(key, "X-")
}

// absolute refuses any other path: fstab has no directory of its own.
func absolute(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		return "", fmt.Errorf("%q %w: use a path that starts with /", s, meta.ErrInvalid)
	}
	return s, nil
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q %w: use a number", s, meta.ErrInvalid)
	}
	return uint32(n), nil
}
