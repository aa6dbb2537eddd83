package supply

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// Command is the supply command. findMount turns its --mount flag, empty if
// it was not given, into the directory of a mounted rankfs.
//
// What comes of it goes to print, as a value or as the text of one.
func Command(findMount func(flag string) (string, error), print func(v any, text func(io.Writer)) error) *cobra.Command {
	var c Config
	var mount, dataset, view string
	var check bool
	cmd := &cobra.Command{
		Use:   "supply --maps FILE --pipes FILE --dataset NAME",
		Short: "Feed programs that ask for batches through named pipes",
		Long: `Feed programs that ask for batches through named pipes and map one file each.

FILE lists one path a line; line i of both files serves rank i. Pipes and
mapped files that do not exist are made, and removed at the end. A node that
runs some of the ranks names them with --ranks; its lists have the lines of all
ranks, or of those alone.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := viewName(dataset, view)
			if err != nil {
				return err
			}
			root, err := findMount(mount)
			if err != nil {
				return err
			}
			c.Batches = filepath.Join(root, "datasets", name)
			if err := lookUp(c.Batches, name); err != nil {
				return err
			}
			c.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			if check {
				findings, err := Check(ctx, c)
				return errors.Join(print(findings, func(w io.Writer) {
					for _, f := range findings {
						fmt.Fprintln(w, f)
					}
				}), err)
			}
			if err := Run(ctx, c); err != nil {
				return err
			}
			return print(map[string]string{"supplied": name}, func(io.Writer) {})
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Maps, "maps", "", "`FILE` that lists the mapped files")
	f.StringVar(&c.Pipes, "pipes", "", "`FILE` that lists the named pipes")
	f.StringVar(&dataset, "dataset", "", "`NAME` of the dataset to supply")
	f.StringVar(&view, "view", "", "`OPTIONS` of a view of it, as epoch=3,ranks=16")
	f.StringVar(&mount, "mount", "", "`DIR` where it is mounted, if several are")
	f.StringVar(&c.Ranks, "ranks", "", "serve the ranks of `LIST` alone, as 0,4-7 (default all)")
	f.BoolVar(&c.Once, "once", false, "end when each rank has had its last batch")
	f.DurationVar(&c.Timeout, "timeout", time.Minute, "longest `TIME` to wait for a client, or for a batch")
	f.Lookup("timeout").DefValue = meta.FormatTime(time.Minute)
	f.BoolVar(&check, "check", false, "only check the two lists, print a line for each pair")
	for _, name := range []string{"maps", "pipes", "dataset"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return cmd
}

// lookUp says what is wrong with a view of which the mount can only give an errno.
func lookUp(dir, name string) error {
	_, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return meta.Worded(meta.ErrNotExist, "supply: there is no dataset of the name in %q; see: rankfs dataset ls", name)
	case errors.Is(err, unix.EINVAL):
		return meta.Worded(meta.ErrInvalid, "supply: %q names no view; see why with: rankfs explain %[1]s", name)
	}
	return err
}

// viewName is the directory of a dataset, or of a view of it.
func viewName(dataset, view string) (string, error) {
	name := dataset
	if view != "" {
		name += "@" + view
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("dataset %q: is not a name", name)
	}
	return name, nil
}
