package mounting

import (
	"io"

	"github.com/spf13/pflag"
)

// UmountHelperName is the command that umount(8) calls for a mount of ours: the kernel unmounts one
// mount, and one with a shuffle pool is two.
const UmountHelperName = "umount.fuse.rankfs"

// An UmountCall is a call of the helper by umount(8).
type UmountCall struct {
	Dir     string
	Lazy    bool
	Verbose bool
}

// ParseUmount reads DIR [-flnrv] [-N NAMESPACE] [-t TYPE]. A mount can be unmounted
// without its daemon, so there is nothing to force; and it writes no mtab.
func ParseUmount(args []string) (call UmountCall, err error) {
	f := pflag.NewFlagSet(UmountHelperName, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVarP(&call.Lazy, "lazy", "l", false, "")
	f.BoolVarP(&call.Verbose, "verbose", "v", false, "")
	f.BoolP("force", "f", false, "")
	f.BoolP("no-mtab", "n", false, "")
	f.BoolP("read-only", "r", false, "")
	f.StringP("types", "t", "", "")
	namespace := f.StringP("namespace", "N", "", "")
	switch err := f.Parse(args); {
	case err != nil:
		return call, umountUsage("%v", err)
	case *namespace != "":
		return call, umountUsage("-N is not supported: enter the namespace with nsenter first")
	case f.NArg() != 1:
		return call, umountUsage("want DIR, got %q", f.Args())
	}
	call.Dir = f.Arg(0)
	return call, nil
}

func umountUsage(format string, args ...any) error {
	return helperUse(UmountHelperName, "umount DIR", format, args...)
}
