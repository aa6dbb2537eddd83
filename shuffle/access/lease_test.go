package access

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A refused lease says what has to be changed, where that is known.
func TestWhyThereIsNoLease(t *testing.T) {
	for errno, says := range map[unix.Errno][]string{
		unix.EACCES: {"permission denied: the daemon needs CAP_LEASE", "--cap-add LEASE", "without --pool-ram"},
		unix.EPERM:  {"not permitted: the daemon needs CAP_LEASE", "--cap-add LEASE", "without --pool-ram"},
		unix.EINVAL: {"invalid argument: this kernel gives none", "'sysctl fs.leases-enable=1'", "without --pool-ram"},
		unix.ENOMEM: {"shuffle pool: cannot allocate memory"},
	} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			err := errLease(errno)
			for _, text := range says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in %q", text, err)
				}
			}
			if denied := len(says) > 1; !errors.Is(err, errno) || errors.Is(err, meta.ErrDenied) != denied {
				t.Errorf("%v is denied: %v", err, !denied)
			}
		})
	}
}
