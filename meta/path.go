package meta

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// AtPath says in plain words why something at a path cannot be had; errors.Is finds in it what
// it finds in err.
func AtPath(path string, err error) error { return Worded(err, "%s: %s", path, WhyNot(err)) }

// Plain is the text of err for a person: of each path in it why it cannot be had, as AtPath says
// it, however what the call said was wrapped.
func Plain(err error) string {
	text := err.Error()
	switch at := err.(type) {
	case *fs.PathError:
		return at.Path + ": " + WhyNot(at)
	case *os.LinkError:
		return at.Old + " to " + at.New + ": " + WhyNot(at.Err)
	case *os.SyscallError:
		return WhyNot(at)
	case interface{ Unwrap() error }:
		return plainly(text, at.Unwrap())
	case interface{ Unwrap() []error }:
		return plainly(text, at.Unwrap()...)
	}
	return text
}

// plainly is a text in which the words of errors are plain.
func plainly(text string, errs ...error) string {
	for _, err := range errs {
		if err == nil {
			continue
		}
		if is, words := err.Error(), Plain(err); is != words {
			text = strings.ReplaceAll(text, is, words)
		}
	}
	return text
}

// ShellWord is a path, or another word, as a shell takes it: in quotes where it needs them.
func ShellWord(s string) string {
	const plain = "%+,-./:=@_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Impossible reports whether a path can never be one, whatever is mounted or made.
func Impossible(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG)
}

// WhyNot is the cause in words, without the path and the names of calls.
func WhyNot(err error) string {
	var path *fs.PathError
	var call *os.SyscallError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or directory"
	case errors.Is(err, unix.ENOTDIR):
		return "it is below a file, or not a directory"
	case errors.Is(err, unix.EISDIR):
		return "it is a directory, not a file"
	case errors.Is(err, unix.ELOOP):
		return "its symbolic links lead in a circle"
	case errors.Is(err, unix.ENAMETOOLONG):
		return "its name is too long"
	case errors.Is(err, unix.EROFS):
		return "it is on a read-only file system"
	case errors.As(err, &path):
		return Plain(path.Err)
	case errors.As(err, &call):
		return call.Err.Error()
	}
	return err.Error()
}
