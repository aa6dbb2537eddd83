package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

func usage(c *cobra.Command, err error) error {
	name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "rankfs"), " ")
	text := meta.Plain(err)
	if name != "" {
		text = name + ": " + text
	}
	kind := failure.ErrUsage
	if errors.Is(err, meta.ErrNotExist) {
		kind = meta.ErrNotExist // what an option names may come, and the call be right then
	}
	h := failure.Hinted{Next: "see: " + c.CommandPath() + " --help"}
	_ = errors.As(err, &h)
	return failure.Hinted{Err: meta.Worded(kind, "%s", text), Next: h.Next}
}

// flagError says what is wrong with a flag; the words of pflag itself speak of Go.
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

// brought adds the commands that cobra brings along, which refuse what is not there; of
// themselves they show some help and are done.
func brought(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.RunE = helpOf
	}
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args = noSuchCommand
		completion.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		for _, shell := range completion.Commands() {
			shell.Args = wants()
		}
	}
}

func helpOf(c *cobra.Command, args []string) error {
	of, others, err := c.Root().Find(args)
	if err != nil {
		return err
	}
	if err := noSuchCommand(of, others); err != nil {
		return err
	}
	of.InitDefaultHelpFlag()
	return of.Help()
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("no such command: %q", args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = failure.Hint(err, "perhaps: %s %s", c.CommandPath(), near[0])
	}
	return usage(c, err)
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes of rankfs mean",
		Long: `Exit codes of rankfs:

    0  done
    1  failure of any other kind; not everything is ready
    2  wrong usage: an argument or an option that can never be right
    3  not found: no such mount (its daemon may be gone), dataset, queue, node,
       pin or file
    4  taken: it exists already, or is busy
    5  source: it has changed since it was indexed, or is corrupt
    6  away: no leader; no answer of a node, its daemon or HDFS; no such own
       address; try later
    7  denied: a change that is not yours to make, a wrong or used token, a node
       that was removed
  130  stopped by a signal

mount.rankfs and umount.fuse.rankfs, which mount(8) and umount(8) call, have
the codes of mount(8) instead: 1 for wrong usage, 8 when stopped, 32 when they
failed.`,
	}
}

// report writes an error for a person and returns its exit code.
func (p *program) report(err error) int {
	if err != nil {
		// Of several errors each is said, and what goes on is set in.
		text := strings.ReplaceAll(meta.Plain(err), "\n", "\nrankfs: ")
		fmt.Fprintf(p.err, "rankfs: %s\n", strings.ReplaceAll(text, "\nrankfs:  ", "\n "))
	}
	var h failure.Hinted
	if errors.As(err, &h) {
		fmt.Fprintf(p.err, "  %s\n", strings.ReplaceAll(h.Next, "\n", "\n  "))
	}
	return failure.ExitCode(err)
}
