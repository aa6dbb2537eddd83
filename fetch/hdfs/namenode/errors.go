package namenode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// The errors that callers branch on. Both are also meta.ErrBusy, since the same
// question may be answered later, and meta.ErrUnavailable, since it is for others
// to see to that.
var (
	// ErrUnreachable: no namenode answers.
	ErrUnreachable error = sentinel("no namenode answers")
	// ErrSafeMode: the namenode is starting up or was put into safe mode.
	ErrSafeMode error = sentinel("namenode is not ready")
)

type sentinel string

func (s sentinel) Error() string   { return string(s) }
func (s sentinel) Unwrap() []error { return []error{meta.ErrBusy, meta.ErrUnavailable} }

var (
	errSilent = errors.New("no answer in time")
	errClosed = errors.New("client is closed")
)

// A brokenError is why a connection failed; it says nothing of the call.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// A finalError is why a connection cannot be made that is no passing trouble.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }
func (e *finalError) Unwrap() error { return e.cause }

func final(err error) error { return &finalError{err} }

// isFinal reports whether another namenode, or a later try, would do no better.
func isFinal(err error) bool {
	var remote *remoteError
	var end *finalError
	return errors.As(err, &remote) || errors.As(err, &end)
}

// A remoteError is an exception of a namenode.
type remoteError struct {
	class string // of Java
	text  string
}

// maxText bounds the text that a namenode can put into an error.
const maxText = 400

func remoteErrorOf(header proto.Message) *remoteError {
	text, _, _ := strings.Cut(message.Get(header, "errorMsg").String(), "\n") // a stack trace follows
	class := message.Get(header, "exceptionClassName").String()
	return &remoteError{class: clean(class), text: clean(text)}
}

// clean makes text of a stranger fit to print.
func clean(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

func (e *remoteError) Error() string {
	if e.text == "" {
		return e.brief()
	}
	return e.brief() + ": " + e.text
}

// brief is the name of the exception without its package.
func (e *remoteError) brief() string {
	if e.class == "" {
		return "an error without a name"
	}
	return e.class[strings.LastIndexAny(e.class, ".$")+1:]
}

// elsewhere reports whether another namenode, or this one a little later, may
// answer instead.
func elsewhere(err error) bool {
	var broken *brokenError
	if errors.As(err, &broken) {
		return true
	}
	return isNotActive(err)
}

// isNotActive reports whether a namenode said that it is in standby, or not
// ready yet.
func isNotActive(err error) bool {
	var remote *remoteError
	if !errors.As(err, &remote) {
		return false
	}
	switch remote.brief() {
	case "StandbyException":
		return true
	case "RetriableException":
		return !strings.Contains(remote.text, "SafeMode") // it lasts longer than a call may
	}
	return false
}

// explain turns an exception into an error that a person can act on.
func explain(err error, user, path string) error {
	var remote *remoteError
	if !errors.As(err, &remote) {
		return err
	}
	switch remote.brief() {
	case "FileNotFoundException", "ParentNotDirectoryException":
		return meta.ErrNotExist
	case "AccessControlException", "AuthorizationException":
		return denied(remote, user, path)
	case "SaslException":
		return meta.Worded(syscall.EACCES, "permission denied for user %q: the namenode refuses the ticket (%s); are the clocks the same, and its principal the one that is configured?",
			user, remote.text)
	case "SafeModeException", "RetriableException", "StandbyException":
		return fmt.Errorf("%w: %s; wait, or see 'hdfs dfsadmin -safemode get'", ErrSafeMode, remote.text)
	case "InvalidPathException", "IllegalArgumentException", "SnapshotAccessControlException":
		return fmt.Errorf("%w: %w", meta.ErrInvalid, remote)
	case "UnresolvedPathException":
		return fmt.Errorf("%w: a symbolic link is on the way; give the path that it leads to", meta.ErrInvalid)
	}
	return remote
}

func denied(remote *remoteError, user, path string) error {
	if strings.Contains(remote.text, "SIMPLE authentication is not enabled") {
		return fmt.Errorf("%w: the namenode wants Kerberos; give a keytab or a credential cache", syscall.EACCES)
	}
	if strings.Contains(remote.text, "not allowed to impersonate") || strings.Contains(remote.text, "Unauthorized connection for super-user") {
		return meta.Worded(syscall.EACCES, "permission denied for user %q: %s; act for another user, or none, or have the core-site.xml of the namenodes allow it, by hadoop.proxyuser.NAME.users and hadoop.proxyuser.NAME.hosts, where NAME is the short name of who logs in",
			user, remote.text)
	}
	if remote.brief() == "AuthorizationException" || path == "" {
		return meta.Worded(syscall.EACCES, "permission denied for user %q: %s", user, remote.text)
	}
	if _, at, found := strings.Cut(remote.text, `inode="`); found { // perhaps a directory above the path
		path, _, _ = strings.Cut(at, `"`)
	}
	return meta.Worded(syscall.EACCES, "permission denied for user %q: %s; ask its owner to let you in, as with 'hdfs dfs -setfacl -m user:%s:r-x %s'",
		user, remote.text, user, path)
}

// tries are why each address did not answer.
type tries []struct {
	addr string
	err  error
}

// reasons joins the errors of all tries into one line.
func (a tries) reasons() string {
	var all []string
	for _, t := range a {
		if t.err != nil {
			all = append(all, t.addr+": "+reason(t.err))
		}
	}
	return strings.Join(all, "; ")
}

// problem puts the reasons into one error.
func (a tries) problem() error {
	what := ErrUnreachable
	for _, t := range a {
		if isNotActive(t.err) {
			what = ErrSafeMode
		}
	}
	return fmt.Errorf("%w (%s); check that they run and that the addresses are those of fs.defaultFS",
		what, a.reasons())
}

// reason says in few words why a connection failed.
func reason(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("host name %q is not known (%s)", dns.Name, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused, nothing listens there"
	case errors.Is(err, errSilent), errors.Is(err, context.DeadlineExceeded):
		return errSilent.Error()
	}
	return clean(err.Error())
}
