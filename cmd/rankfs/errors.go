package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A hinted error knows what to do next.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// hint adds the next step to an error that does not know one, in either way.
func hint(err error, format string, args ...any) error {
	var h hinted
	if err == nil || errors.As(err, &h) || saysNext(err) {
		return err
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// saysNext reports whether the words of an error, as a daemon's, name a command
// to go on with.
func saysNext(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{": rankfs ", "'rankfs ", " with: "}, func(s string) bool { return strings.Contains(text, s) })
}

// A failure has its own words and the kind of another error.
type failure struct {
	text string
	kind error
}

func (e failure) Error() string { return e.text }
func (e failure) Unwrap() error { return e.kind }

func failf(kind error, format string, args ...any) error {
	return failure{fmt.Sprintf(format, args...), kind}
}

// errUsage is the kind of an error in how the command was called.
var errUsage = errors.New("usage")

func usage(c *cobra.Command, err error) error {
	name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "rankfs"), " ")
	text := err.Error()
	if name != "" {
		text = name + ": " + text
	}
	kind := errUsage
	if errors.Is(err, meta.ErrNotExist) {
		kind = meta.ErrNotExist // what an option names may come, and the call be right then
	}
	if h := (hinted{}); errors.As(err, &h) {
		return hinted{failure{text, kind}, h.hint}
	}
	return hinted{failure{text, kind}, "see: " + c.CommandPath() + " --help"}
}

// flagError says in our words what is wrong with a flag, whose own speak of Go.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return usage(c, err)
	}
	want := map[string]string{
		"uint64": "a whole number from 0 on", "uint32": "a whole number from 0 on", "int": "a whole number",
		"duration": "a time, as 30s or 5m", "float64": "a number", "bool": "true or false",
	}[value.GetFlag().Value.Type()]
	if want == "" {
		return usage(c, err)
	}
	return usage(c, fmt.Errorf("--%s %q is not %s, or is too large", value.GetFlag().Name, value.GetValue(), want))
}

// missingFlags refuses a command without all the flags that it needs.
func missingFlags(c *cobra.Command) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed && err == nil {
			err = usage(c, fmt.Errorf("--%s is missing", f.Name))
		}
	})
	return err
}

// unread says why a file cannot be read that an option names.
func unread(option, path string, err error) error {
	kind, why := errUsage, err.Error()
	var odd *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind, why = meta.ErrNotExist, "there is no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		why = "you may not read it"
	case errors.Is(err, unix.EISDIR):
		why = "it is a directory, not a file"
	case errors.As(err, &odd):
		why = odd.Err.Error()
	}
	return hint(failf(kind, "--%s %s: %s", option, path, why), "look for it with: ls -ld %s", path)
}

// wants refuses any other arguments than those named.
func wants(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(c, fmt.Errorf("%s is missing", names[len(args)]))
		case len(args) > len(names):
			return usage(c, fmt.Errorf("%q is one argument too many", args[len(names)]))
		}
		return nil
	}
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("no such command: %q", args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = hint(err, "perhaps: %s %s", c.CommandPath(), near[0])
	}
	return usage(c, err)
}

// The exit codes. A script may branch on them.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitNotFound = 3
	exitTaken    = 4
	exitSource   = 5
	exitAway     = 6
	exitDenied   = 7
	exitStopped  = 130
)

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes of rankfs mean",
		Long: `Exit codes of rankfs:

    0  done
    1  failure of any other kind; not everything is ready
    2  wrong usage: an argument or an option that can never be right
    3  not found: no such mount, dataset, queue, node, pin or file
    4  taken: it exists already, or is busy
    5  source: it has changed since it was indexed, or is corrupt
    6  away: no leader, or a node or HDFS does not answer; try later
    7  denied: a change that is not yours to make, a wrong or used token, a node
       that was removed
  130  stopped by a signal

mount.rankfs, which mount(8) calls, has the codes of mount(8) instead:
1 for wrong usage, 8 when stopped, 32 when the mount failed.`,
	}
}

func exitCode(err error) int {
	kinds := []struct {
		err  error
		code int
	}{
		{errUsage, exitUsage},
		{meta.ErrInvalid, exitUsage},
		{meta.ErrNotExist, exitNotFound},
		{meta.ErrExist, exitTaken},
		{meta.ErrBusy, exitTaken},
		{meta.ErrStale, exitSource},
		{meta.ErrCorrupt, exitSource},
		{meta.ErrUnavailable, exitAway},
		{meta.ErrDenied, exitDenied},
		{context.Canceled, exitStopped},
	}
	if err == nil {
		return exitOK
	}
	if told := (toldError{}); errors.As(err, &told) {
		return told.Code
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.code
		}
	}
	return exitFailure
}

// report writes an error for a person and returns its exit code.
func (p *program) report(err error) int {
	if err != nil {
		fmt.Fprintf(p.err, "rankfs: %v\n", err)
	}
	var h hinted
	if errors.As(err, &h) {
		fmt.Fprintf(p.err, "  %s\n", strings.ReplaceAll(h.hint, "\n", "\n  "))
	}
	return exitCode(err)
}
