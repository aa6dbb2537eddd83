package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/fetch/uri"
	"rankfs/meta"
)

// DatasetCommands are the commands below rankfs dataset.
type datasetCommands struct{ *program }

func (p *program) datasetCommand() *cobra.Command {
	g := datasetCommands{p}
	return p.group(&cobra.Command{Use: "dataset", Short: "Register datasets, look at them, remove them"},
		g.create(), g.list(), g.show(), g.verify(), g.refresh(), g.remove())
}

func (p datasetCommands) create() *cobra.Command {
	var r control.CreateRequest
	var as, db string
	c := &cobra.Command{
		Use:   "create NAME --source URI",
		Short: "Register a dataset and index its source",
		Long: `Register a dataset and index its source.

Sources:
  lmdb:PATH            an LMDB, a directory or a single file; --db names a
                       database in it
  file:PATH            with --as lines: a text file, each line a record
                       with --as fixed:N: a file of records of N bytes
                       with --as files: a directory, each file a record
  hdfs://HOST:PORT/PATH, or a nameservice, or nothing, of --hadoop-conf
                       a file, directory or pattern in HDFS, as above, or
                       with --as sequence: SequenceFiles, each value a record
                       with --as lmdb: an LMDB, copied to --nvme
  dataset:NAME         another dataset, in its own order; ?records=FIRST-LAST
                       behind it: these records of it, counted from 0
  shuffle:JOB/STAGE    a sealed stage of the shuffle pool: the records of its
                       parts, one part after the other`,
		Args: wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			if err := checkCreate(&r, as, db); err != nil {
				return usage(c, err)
			}
			create := func(d *control.Client, ctx context.Context, _ string, show func(control.Progress)) (control.Dataset, error) {
				made, err := d.Create(ctx, r, show)
				switch {
				case errors.Is(err, meta.ErrExist):
					err = failure.Hint(err, "index it again with: rankfs dataset refresh %[1]s\nor remove it with: rankfs dataset rm %[1]s", r.Name)
				case errors.Is(err, meta.ErrStale):
					err = failure.Hint(err, "try again when nothing writes to the source: no dataset was made")
				}
				return made, err
			}
			return long(c.Context(), p.program, r.Name, create, notIndexed, writeIndexed)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&r.Source, "source", "", "`URI` of the records")
	f.StringVar(&as, "as", "", "what a record of files is, `KIND` lines, fixed:N, files, or in HDFS sequence or lmdb")
	f.StringVar(&db, "db", "", "database `NAME` in an LMDB")
	f.Uint64Var(&r.Ranks, "ranks", 1, "number `N` of ranks that read it")
	f.StringVar(&r.Batch, "batch", "256", "`SIZE` of a batch: records, bytes as 64MiB, or chunk")
	f.StringVar(&r.Order, "order", "none", "`ORDER` of records: none, window:N or full")
	f.Uint64Var(&r.Seed, "seed", 0, "number `N` that chooses the order")
	f.StringVar(&r.Tail, "tail", "keep", "`RULE` for records that do not fill the last step: keep, drop or pad")
	_ = c.MarkFlagRequired("source")
	return c
}

// checkCreate finds what is wrong without asking a daemon.
func checkCreate(r *control.CreateRequest, as, db string) (err error) {
	if r.Source, err = sourceURI(r.Source, as, db); err != nil {
		return err
	}
	if u, err := uri.Parse(r.Source); err == nil && u.FormIsFound() && isLMDB(u.Path) {
		return failure.Hint(fmt.Errorf("source %s is an LMDB", u.Path), "use --source lmdb:%s, or add --as files to read its files as they are", u.Path)
	}
	if r.Ranks < 1 || r.Ranks > meta.MaxRanks {
		return fmt.Errorf("number of ranks %d %w: use 1 to %d", r.Ranks, meta.ErrInvalid, meta.MaxRanks)
	}
	_, batch := meta.ParseBatch(r.Batch)
	_, order := meta.ParseOrder(r.Order)
	_, tail := meta.ParseTail(r.Tail)
	return firstOf(meta.CheckName(r.Name), batch, order, tail)
}

// isLMDB reports whether a directory has the two files of an LMDB, whose name
// says so, and nothing else.
func isLMDB(dir string) bool {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 2 {
		return false
	}
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() == "data.mdb" })
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p datasetCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the datasets",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, (*control.Client).Datasets, writeDatasets)
		},
	}
}

func (p datasetCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show all that is known of a dataset",
		Args:  wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).Dataset, about), writeDataset)
		},
	}
}

func (p datasetCommands) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify NAME",
		Short: "Read every record of a dataset back",
		Args:  wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			notRead := func(name string) error { return bySignal("not all of %s was read", name) }
			return long(c.Context(), p.program, args[0], (*control.Client).Verify, notRead, func(w io.Writer, v control.Verification) {
				fmt.Fprintf(w, "%s: %s, %s, all as indexed\nchecksum %s\n",
					args[0], terminal.Plural(v.Records, "record"), terminal.Bytes(v.Bytes), v.Checksum)
			})
		},
	}
}

func (p datasetCommands) refresh() *cobra.Command {
	var records bool
	c := &cobra.Command{
		Use:   "refresh NAME",
		Short: "Index a dataset again whose source has changed",
		Args:  wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			refresh := func(d *control.Client, ctx context.Context, name string, progress func(control.Progress)) (control.Dataset, error) {
				return d.Refresh(ctx, control.RefreshRequest{Name: name, Records: records}, progress)
			}
			return long(c.Context(), p.program, args[0], refresh, notIndexed, writeRefreshed)
		},
	}
	c.Flags().BoolVar(&records, "records", false, "count the lines of a dataset whose batches are chunks, so that it can be cut otherwise")
	return c
}

func (p datasetCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Forget a dataset; its source stays as it is",
		Args:    wants("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			remove := func(d *control.Client, ctx context.Context, name string) error {
				return about(d.Remove(ctx, name), name)
			}
			return removed(c, p, args[0], remove, func(w io.Writer) { fmt.Fprintln(w, "removed", args[0]) })
		},
	}
}

// An operation is a method of a client that takes its time.
type operation[T any] func(d *control.Client, ctx context.Context, name string, show func(control.Progress)) (T, error)

// notIndexed says what is left by a create or refresh that was stopped: once the index is
// ready, the cluster agrees to it.
func notIndexed(name string) error {
	return failure.Hint(bySignal("unless its index was ready by then, %s is as it was before", name), "see: rankfs dataset show %s", name)
}

// bySignal is the error of a command that a signal has ended, and says what was done by then.
func bySignal(format string, args ...any) error {
	return meta.Worded(context.Canceled, "stopped by a signal: "+format, args...)
}

// long shows the progress of an operation and then its result, or what is left of one that
// was stopped.
func long[T any](ctx context.Context, p *program, name string, do operation[T], left func(name string) error, text func(io.Writer, T)) error {
	d, err := p.daemon()
	if err != nil {
		return err
	}
	m := terminal.NewMeter(p.err, p.now, name)
	result, err := do(d, ctx, name, m.Show)
	m.Done() // before anything else is written to the terminal
	switch {
	case ctx.Err() != nil:
		return left(name)
	case err != nil:
		return about(err, name)
	}
	return p.print(result, func(w io.Writer) { text(w, result) })
}

// about adds the next step to an error about a dataset.
func about(err error, name string) error {
	switch {
	case errors.Is(err, meta.ErrNotExist):
		return failure.Hint(err, "list the datasets with: rankfs dataset ls")
	case errors.Is(err, meta.ErrStale):
		return failure.Hint(err, "index it again with: rankfs dataset refresh %s", name)
	case errors.Is(err, meta.ErrCorrupt):
		return failure.Hint(err, "see whether the source is whole, and of the kind that its URI says")
	case errors.Is(err, meta.ErrBusy):
		return failure.Hint(err, "try again in a while")
	}
	return err
}
