package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
)

// group is a command that has others below it.
func (p *program) group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args = noSuchCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	p.mountFlag(c)
	c.AddCommand(below...)
	return c
}

// An asker finds the daemon to ask, and prints what that says: the program, or commands of it.
type asker interface {
	daemon() (*control.Client, error)
	print(v any, text func(io.Writer)) error
}

// A request is a method of a client that needs nothing to be said.
type request[T any] func(d *control.Client, ctx context.Context) (T, error)

// named is the request for what has a name; about adds the next step to its error.
func named[T any](name string, ask func(*control.Client, context.Context, string) (T, error), about func(err error, name string) error) request[T] {
	return func(d *control.Client, ctx context.Context) (T, error) {
		t, err := ask(d, ctx, name)
		return t, about(err, name)
	}
}

// answer has the daemon asked, and prints what it says.
func answer[T any](c *cobra.Command, p asker, ask request[T], text func(io.Writer, T)) error {
	d, err := p.daemon()
	if err != nil {
		return err
	}
	t, err := ask(d, c.Context())
	if err != nil {
		return err
	}
	return p.print(t, func(w io.Writer) { text(w, t) })
}

// removed has the daemon remove what has a name, and says so.
func removed(c *cobra.Command, p asker, name string, remove func(*control.Client, context.Context, string) error, text func(io.Writer)) error {
	type removed struct {
		Removed string `json:"removed"`
	}
	return answer(c, p, func(d *control.Client, ctx context.Context) (removed, error) {
		return removed{name}, remove(d, ctx, name)
	}, func(w io.Writer, _ removed) { text(w) })
}

// complete offers what the daemon knows for the first argument of a command.
func complete[T any](c *cobra.Command, p asker, args []string, ask request[T], names func(T) []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	d, err := p.daemon()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	t, err := ask(d, c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(t), cobra.ShellCompDirectiveNoFileComp
}
