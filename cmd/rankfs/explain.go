package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

func (p *program) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain NAME[@OPTIONS]",
		Short: "Say what the name of a view stands for, or why it is refused",
		Long: `Say what the name of a view stands for.

Where a name below datasets/ is refused, ls and open can only say that it is no
valid argument, or that there is no such directory. This says why. A whole path
will do as well.`,
		Args: wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, func(d *control.Client, ctx context.Context) (control.Explanation, error) {
				name, below := viewIn(args[0], p.asked.Mount)
				if name == "" {
					return control.Explanation{}, usage(c, fmt.Errorf("%q is not below %s/datasets; give the name of a view, or a path in one", args[0], p.asked.Mount))
				}
				x, err := d.Explain(ctx, control.ExplainRequest{Name: name})
				if err != nil {
					return x, about(err, name)
				}
				return x, inView(below, x)
			}, writeExplained)
		},
	}
	p.mountFlag(c)
	return c
}

func writeExplained(w io.Writer, x control.Explanation) {
	terminal.Pairs(w, "",
		"name", x.View,
		"view", x.Full,
		"ranks", terminal.Count(x.Ranks),
		"steps", terminal.Count(x.Steps),
		"records", terminal.Count(x.Records),
		"bytes", terminal.Bytes(x.Bytes),
	)
	warn(w, x.Warning)
}

// viewIn is the name of the view in a path, and what follows it. The mount point may
// itself be below a directory called datasets.
func viewIn(path, mount string) (name, below string) {
	if in, ok := strings.CutPrefix(path, mount+"/datasets/"); ok {
		path = in
	} else if _, in, ok := strings.Cut(path, "/datasets/"); ok {
		path = in
	}
	name, below, _ = strings.Cut(path, "/")
	return name, strings.TrimRight(below, "/")
}

// inView says why what follows the name of a view is not there, if it is not.
func inView(below string, x control.Explanation) error {
	dir, file, deep := strings.Cut(below, "/")
	switch dir {
	case "":
		return nil
	case "dataset.json", "locality", "chunks":
		if deep {
			return meta.Worded(meta.ErrNotExist, "%s is a file, so there is no %s", dir, below)
		}
		return nil
	}
	if err := inRun(dir, "rank-", x.Ranks, 1); err != nil || file == "" || file == "queue" {
		return err
	}
	return inRun(strings.TrimSuffix(file, ".idx"), "batch-", x.Steps, 6)
}

// inRun says why a name is not among n that are numbered from 0 on, padded to a number
// of digits.
func inRun(name, prefix string, n uint64, digits int) error {
	kind := strings.TrimSuffix(prefix, "-")
	number, err := strconv.ParseUint(strings.TrimPrefix(name, prefix), 10, 64)
	switch {
	case err != nil || name != fmt.Sprintf("%s%0*d", prefix, digits, number):
		return meta.Worded(meta.ErrNotExist, "no file is called %q: the name of a %s is as %s%0*d", name, kind, prefix, digits, 0)
	case n == 0:
		return meta.Worded(meta.ErrNotExist, "there is no %s: the view has none", name)
	case number >= n:
		return meta.Worded(meta.ErrNotExist, "there is no %s: the last %s of the view is %s%0*d", name, kind, prefix, digits, n-1)
	}
	return nil
}
