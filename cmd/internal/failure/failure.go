package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"rankfs/meta"
)

// A Hinted error knows the next step of the user, which is written on a line of its own.
type Hinted struct {
	Err  error
	Next string
}

func (e Hinted) Error() string { return e.Err.Error() }
func (e Hinted) Unwrap() error { return e.Err }

// Hint adds the next step to an error that has none, neither as a hint nor in
// its own words.
func Hint(err error, format string, args ...any) error {
	var h Hinted
	if err == nil || errors.As(err, &h) || saysNext(err) {
		return err
	}
	return Hinted{err, fmt.Sprintf(format, args...)}
}

// saysNext reports whether the words of an error, which may be a daemon's, name
// the command to run next.
func saysNext(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{": rankfs ", "'rankfs ", " with: "}, func(s string) bool { return strings.Contains(text, s) })
}

// ErrUsage is the kind of an error in how the command was called.
var ErrUsage = errors.New("usage")

// Unread says why a file cannot be read that an option names.
func Unread(option, path string, err error) error {
	kind, why := ErrUsage, meta.WhyNot(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = meta.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		why = "you may not read it"
	}
	return Hint(meta.Worded(kind, "--%s %s: %s", option, path, why), "look for it with: ls -ld %s", meta.ShellWord(path))
}

// Attr has the log say what is wrong with a path as commands do.
func Attr(_ []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is {
		return slog.String(a.Key, meta.Plain(err))
	}
	return a
}
