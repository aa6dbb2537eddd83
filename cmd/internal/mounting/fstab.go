package mounting

import (
	"errors"
	"strings"

	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// HelperName is the command that mount(8) calls for mount -t rankfs.
const HelperName = "mount.rankfs"

// A HelperCall is a call of the helper by mount(8).
type HelperCall struct {
	Dir     string
	Fake    bool // check everything, mount nothing
	sloppy  bool // tolerate options that are unknown
	Verbose bool
	Options Options
}

// ParseHelper reads SPEC DIR [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS].
// SPEC is whatever fstab has there, often none.
func ParseHelper(args []string) (HelperCall, error) {
	call := HelperCall{Options: DefaultOptions()}
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
				call.Fake = true
			case 's':
				call.sloppy = true
			case 'v':
				call.Verbose = true
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
	call.Dir = names[1]
	return call, call.set(strings.Join(options, ","))
}

func helperUsage(format string, args ...any) error {
	return helperUse(HelperName, "mount -t rankfs none DIR -o state=DIR,nvme=DIR:SIZE,ram=SIZE", format, args...)
}

// helperUse refuses a call of a helper, and says what to type instead.
func helperUse(name, use, format string, args ...any) error {
	return failure.Hint(meta.Worded(failure.ErrUsage, name+": "+format, args...), "use: %s", use)
}

// set takes the options of -o.
func (call *HelperCall) set(text string) error {
	options, err := splitOptions(text)
	if err != nil {
		return err
	}
	for _, option := range options {
		key, value, hasValue := strings.Cut(option, "=")
		if isGeneric(key) || option == "allow_other" { // as is every mount that is not private
			continue
		}
		err := call.Options.set(key, value, hasValue)
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

// isGeneric reports whether an option is for mount(8) or systemd, or holds
// for every rankfs anyway. rw is wrong and still here: mount(8) adds it to
// all options that do not say ro.
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
