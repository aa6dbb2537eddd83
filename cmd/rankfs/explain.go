package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
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
			d, err := p.daemon()
			if err != nil {
				return err
			}
			name := viewIn(args[0])
			x, err := d.Explain(c.Context(), name)
			if err != nil {
				return about(err, name)
			}
			return p.print(x, func(w io.Writer) { writeExplained(w, x) })
		},
	}
	p.mountFlag(c)
	return c
}

func writeExplained(w io.Writer, x control.Explanation) {
	pairs(w, "",
		"view", x.View,
		"ranks", count(x.Ranks),
		"steps", count(x.Steps),
		"records", count(x.Records),
		"bytes", size(x.Bytes),
	)
	warn(w, x.Warning)
}

// viewIn is the name of the view in a path.
func viewIn(path string) string {
	if _, below, ok := strings.Cut(path, "/datasets/"); ok {
		path = below
	}
	name, _, _ := strings.Cut(path, "/")
	return name
}
