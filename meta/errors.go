package meta

import (
	"errors"
	"fmt"
	"syscall"
)

// The errors that callers branch on. Package fs turns each into an errno.
var (
	// ErrNotExist: no such dataset, view, rank, batch or node.
	ErrNotExist = errors.New("does not exist")
	// ErrNoPin is an ErrNotExist: nothing is pinned.
	ErrNoPin = fmt.Errorf("%w", ErrNotExist)
	// ErrNoPool is an ErrNotExist: this node has no shuffle pool.
	ErrNoPool = fmt.Errorf("%w", ErrNotExist)
	// ErrNoJob is an ErrNotExist: the shuffle pool has no such job.
	ErrNoJob = fmt.Errorf("%w", ErrNotExist)
	// ErrExist: something else of that name is there already.
	ErrExist = errors.New("exists already")
	// ErrInvalid: a name, number or option that can never be right.
	ErrInvalid = errors.New("is not valid")
	// ErrStale: the source is no longer what was indexed.
	ErrStale = errors.New("source has changed since it was indexed")
	// ErrGone is an ErrStale: nothing is where the source was.
	ErrGone = fmt.Errorf("%w: it is gone", ErrStale)
	// ErrCorrupt: bytes that contradict their own format or checksum.
	ErrCorrupt = errors.New("is corrupt")
	// ErrNoSpace: no tier has room, now or ever, for what was asked.
	ErrNoSpace = errors.New("no room in any tier")
	// ErrBusy: a bounded resource is taken; the same request may succeed later.
	ErrBusy = errors.New("is busy")
	// ErrOvertaken: the caller has lost what it worked on to another.
	ErrOvertaken = errors.New("is another reader's now")
	// ErrSetAside: units that no worker could finish, and that none is given any more.
	ErrSetAside = errors.New("was set aside in part")
	// ErrUnavailable: the nodes that could answer do not, perhaps only for now.
	ErrUnavailable = errors.New("is not available")
	// ErrQuota: a user's share of something is used up.
	ErrQuota = errors.New("is over the quota")
	// ErrUnequal: bytes that should be those of before are others.
	ErrUnequal = errors.New("has other bytes than before")
	// ErrLost: bytes of which no copy is left.
	ErrLost = errors.New("is lost")
	// ErrDenied: the sender has no right to what it asks.
	ErrDenied = errors.New("is not allowed")
)

// Worded is an error of a kind, one of the above or another that callers branch
// on, in words of its own: for a sentence in which those of the kind do not fit.
func Worded(kind error, format string, args ...any) error {
	return &worded{fmt.Errorf(format, args...), kind}
}

type worded struct{ words, kind error }

func (w *worded) Error() string   { return w.words.Error() }
func (w *worded) Unwrap() []error { return []error{w.kind, w.words} }

// OutOfFiles reports whether all that lacked were descriptors of this process, or of the
// machine: that is the fault of no disk, source or datanode, and passes.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// clip keeps the error about an endless word short.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
