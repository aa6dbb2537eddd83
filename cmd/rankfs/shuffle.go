package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// ShuffleCommands are the commands below rankfs shuffle.
type shuffleCommands struct{ *program }

func (p *program) shuffleCommand() *cobra.Command {
	g := shuffleCommands{p}
	return p.group(&cobra.Command{
		Use:   "shuffle",
		Short: "See the jobs of the shuffle pool, seal and reset stages",
		Long: `See the jobs of the shuffle pool, and what of each stage is committed, where its
copies are and which readers wait for it; seal a stage, or begin it anew.

A job is a directory of DIR/shuffle, a stage one of a job. Making and removing
them is mkdir and rm -r as well. A job is its owner's alone; root gets at all.`,
	}, g.create(), g.list(), g.show(), g.quota(), g.seal(), g.reset(), g.remove())
}

func (p shuffleCommands) create() *cobra.Command {
	quota := ""
	c := &cobra.Command{
		Use:   "create JOB[/STAGE] [KEY=VALUE ...]",
		Short: "Make a job, or a stage with its spec",
		Long: `Make a job, or a stage of one; the job is made if it is not there. What follows is
the spec of the stage:

  maps=N      map tasks; when all are committed, the stage is sealed. Without it
              that is for rankfs shuffle seal to say
  parts=N     partitions of what each writes (1)
  copies=N    of each map, on as many hosts (2)
  ack=durable commit a map once its copies are on disks, not only on nodes
  place=ring  draw the node of the first copy, too, by the map's name, instead of
              keeping it where it was written
  strict=1    refuse a commit with fewer copies
  weight=N    of work for it, beside that for other jobs; 100 at most (100)
  compress=lz4, compress=zstd
              compress what goes between nodes (none)
  ttl=TIME    the job goes when it was not used for so long (24h)

With record=line, record=fixed:BYTES or record=sizes the pool divides maps by the
hashes of keys, and puts their records in order:

  key=N       a field, counted from 1, or bytes as 1-10; the whole record (0)
  by=range    give parts ranges of keys, one sorted order (by=hash)
  sep=C       where fields end: a character, or space (a tab)
  sort=key    sort each part; sort=key:number by the numbers that are keys
  combine=sum make one line of all of a key: its sum, min, max or count of field 2;
              or with combine=first one record of any kind

  rankfs shuffle create words/count maps=16 parts=8`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wants("JOB[/STAGE]")(c, args)
			}
			if len(args) > 1 && !strings.Contains(args[0], "/") {
				return usage(c, fmt.Errorf("a job has no spec; write JOB/STAGE %s", strings.Join(args[1:], " ")))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			r := control.PoolRequest{Name: args[0], Spec: strings.Join(args[1:], " ")}
			if quota != "" {
				bytes, err := parseQuota(quota)
				if err != nil {
					return usage(c, err)
				}
				r.Quota = bytes
			}
			type created struct {
				Created string `json:"created"`
				Dir     string `json:"dir"`
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (created, error) {
				return created{args[0], filepath.Join(p.asked.Mount, meta.PoolDir, args[0])}, aboutShuffle(d.MakePool(ctx, r), args[0])
			}, func(w io.Writer, made created) {
				fmt.Fprintln(w, made.Dir)
			})
		},
	}
	c.Flags().StringVar(&quota, "quota", "", "let all copies of the job's maps have `SIZE` together, as 50GiB (default: as much as there is)")
	return c
}

func parseQuota(text string) (int64, error) {
	bytes, err := meta.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("quota: %w", err)
	}
	if bytes == 0 {
		return 0, meta.Worded(meta.ErrInvalid, "quota 0 would let nothing be written; for no quota leave it out, or use: rankfs shuffle quota JOB none")
	}
	return int64(bytes), nil
}

func (p shuffleCommands) quota() *cobra.Command {
	return &cobra.Command{
		Use:   "quota JOB SIZE|none",
		Short: "Set the quota of a job",
		Long: `Let all copies of a job's maps have SIZE together, as 50GiB, or as much as there is.
What is committed already stays, also if it is more.`,
		Args:              wants("JOB", "SIZE|none"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			r := control.PoolRequest{Name: args[0]}
			if args[1] != "none" {
				bytes, err := parseQuota(args[1])
				if err != nil {
					return usage(c, err)
				}
				r.Quota = bytes
			}
			type set struct {
				Job   string `json:"job"`
				Quota int64  `json:"quota"`
			}
			return answer(c, p, func(d *control.Client, ctx context.Context) (set, error) {
				return set{r.Name, r.Quota}, aboutShuffle(d.SetQuota(ctx, r), r.Name)
			}, func(w io.Writer, is set) {
				if is.Quota == 0 {
					fmt.Fprintf(w, "%s has no quota\n", is.Job)
					return
				}
				fmt.Fprintf(w, "%s may have %s, all copies counted\n", is.Job, terminal.Bytes(is.Quota))
			})
		},
	}
}

func (p shuffleCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the jobs, of all users",
		Args:    wants(),
		RunE: func(c *cobra.Command, _ []string) error {
			return answer(c, p, named("", func(d *control.Client, ctx context.Context, _ string) ([]control.PoolJob, error) {
				return d.PoolJobs(ctx)
			}, aboutShuffle), p.writeAll)
		},
	}
}

func (p shuffleCommands) writeAll(w io.Writer, list []control.PoolJob) {
	if len(list) == 0 {
		fmt.Fprintf(w, "no jobs; one begins with: mkdir %s\n", filepath.Join(p.asked.Mount, meta.PoolDir, "JOB"))
		return
	}
	t := terminal.NewTable("", "JOB", "OWNER", " STAGES", " MAPS", " BYTES", " MISSING", " LOST", "USED ON", "GOES")
	for _, j := range list {
		goes := "-"
		if j.Ends != nil {
			goes = "in " + terminal.Span(max(0, j.Ends.Sub(p.now())))
		}
		t.Add(j.Job, userName(j.UID), terminal.Count(j.Stages), terminal.Count(j.Maps), terminal.Bytes(j.Bytes),
			terminal.Count(j.Missing), terminal.Count(j.Lost+j.Away), orDash(someNames(j.Users)), goes)
	}
	t.Write(w)
}

// someNames are a few, and how many more.
func someNames(names []string) string {
	const maxListed = 2
	if more := len(names) - maxListed; more > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

func (p shuffleCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show JOB[/STAGE]",
		Short: "Show a job's stages, or one of them",
		Long: `Show the stages of a job; or of one stage what is committed, where its copies are,
which readers wait on this node for a part and for which maps, and what was
refused last here and why.`,
		Args:              wants("JOB[/STAGE]"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.Contains(args[0], "/") {
				return answer(c, p, named(args[0], (*control.Client).PoolStage, aboutShuffle),
					func(w io.Writer, g control.PoolStageDetail) { writeStage(w, g, p.now()) })
			}
			return answer(c, p, named(args[0], (*control.Client).PoolJob, aboutShuffle),
				func(w io.Writer, j control.PoolJobDetail) { writeShuffle(w, j, p.now()) })
		},
	}
}

func writeShuffle(w io.Writer, j control.PoolJobDetail, now time.Time) {
	goes := "not while it is in use on " + someNames(j.Users)
	switch {
	case len(j.Datasets) > 0:
		goes = "not while a dataset is made of it: " + someNames(j.Datasets)
	case j.Ends != nil:
		goes = fmt.Sprintf("in %s, unless something of it is opened", terminal.Span(max(0, j.Ends.Sub(now))))
	}
	terminal.Pairs(w, "",
		"job", j.Job,
		"owner", userName(j.UID),
		"made", date(j.Made),
		"maps", fmt.Sprintf("%s, %s; %s copies missing", terminal.Count(j.Maps), terminal.Bytes(j.Bytes), terminal.Count(j.Missing)),
		"quota", quotaOf(j.PoolJob),
		"here", terminal.Bytes(j.Used)+" in memory",
		"goes", goes,
	)
	if len(j.All) == 0 {
		fmt.Fprintf(w, "\nno stages; make one with: rankfs shuffle create %s/STAGE maps=N parts=N\n", j.Job)
		return
	}
	fmt.Fprintln(w)
	t := terminal.NewTable("", "STAGE", "STATE", " MAPS", " BYTES", " MISSING", " LOST", "SPEC")
	for _, g := range j.All {
		t.Add(g.Stage, g.State, terminal.Count(g.Maps), terminal.Bytes(g.Bytes), terminal.Count(g.Missing), terminal.Count(g.Lost+g.Away), orDash(g.Spec))
	}
	t.Write(w)
}

// quotaOf says how much of its quota a job has, if it has one.
func quotaOf(j control.PoolJob) string {
	if j.Quota == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s, all copies counted", terminal.Bytes(j.Kept), terminal.Bytes(j.Quota))
}

func writeStage(w io.Writer, g control.PoolStageDetail, now time.Time) {
	fmt.Fprint(w, g.Text)
	if len(g.Nodes) > 0 {
		fmt.Fprintf(w, "\ncopies: %d of each map are wanted\n", g.Copies)
		t := terminal.NewTable("  ", "HOST", "STATE", " MAPS", " BYTES")
		for _, n := range g.Nodes {
			t.Add(n.Host, map[bool]string{true: "up", false: "down"}[n.Up], terminal.Count(n.Maps), terminal.Bytes(n.Bytes))
		}
		t.Write(w)
	}
	if len(g.Waits) > 0 {
		fmt.Fprintln(w)
		writePartWaits(w, g, now)
	}
}

// writePartWaits lists the programs that wait for parts, and the nodes or parts they wait for.
func writePartWaits(w io.Writer, g control.PoolStageDetail, now time.Time) {
	fmt.Fprintln(w, "waiting on this node, the longest first")
	t := terminal.NewTable("  ", "PART", " FOR", " THREAD", "PROGRAM", "UNTIL")
	for _, one := range g.Waits[:min(len(g.Waits), maxLeases)] {
		until := "its bytes are here"
		if one.Sealing {
			until = "the stage is sealed"
		}
		t.Add(one.Part, terminal.Span(max(0, now.Sub(one.Since))), strconv.Itoa(int(one.Thread)), programOf(one.Thread), until)
	}
	t.Write(w)
	if more := len(g.Waits) - maxLeases; more > 0 {
		fmt.Fprintf(w, "  and %s more; see: rankfs shuffle show %s/%s --json\n", terminal.Count(more), g.Job, g.Stage)
	}
}

// programOf is the name of the program that a thread runs, if it is to be seen.
func programOf(thread int32) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", thread))
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(name))
}

// writePartStall says whether readers wait for parts, and which maps are not committed.
func writePartStall(w io.Writer, g control.PoolStageDetail, now time.Time) {
	fmt.Fprintf(w, "%s/%s is %s", g.Job, g.Stage, g.State)
	if g.Why != "" {
		fmt.Fprintf(w, ": %s", g.Why)
	}
	fmt.Fprint(w, "\n\n")
	if len(g.Waits) == 0 {
		fmt.Fprintln(w, "no reader on this node waits for a part of it")
		return
	}
	writePartWaits(w, g, now)
}

func (p shuffleCommands) seal() *cobra.Command {
	return &cobra.Command{
		Use:   "seal JOB/STAGE",
		Short: "Say that no more maps come: readers of parts go on",
		Long: `Say that no more maps come to a stage whose spec has no maps=. A reader that waits
for a part gets what is committed, and later commits are refused. A stage with maps= is
sealed by the last of its commits.`,
		Args:              wants("JOB/STAGE"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).SealStage, aboutShuffle), func(w io.Writer, g control.PoolStage) {
				fmt.Fprintf(w, "%s is sealed: %s, %s\n", args[0], terminal.Plural(g.Maps, "map"), terminal.Bytes(g.Bytes))
			})
		},
	}
}

func (p shuffleCommands) reset() *cobra.Command {
	return &cobra.Command{
		Use:   "reset JOB/STAGE",
		Short: "Begin a stage anew, without its maps",
		Long: `Begin a stage anew: what is committed is removed, on all nodes, and map tasks have
to run again. Its spec stays. A part that was opened before keeps its bytes, and is
ESTALE when it is opened once more by its descriptor: no reader mixes old and new bytes.`,
		Args:              wants("JOB/STAGE"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			return answer(c, p, named(args[0], (*control.Client).ResetStage, aboutShuffle), func(w io.Writer, g control.PoolStage) {
				fmt.Fprintf(w, "%s has begun anew, without its maps; those who read it open its parts again\n", args[0])
			})
		},
	}
}

func (p shuffleCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm JOB[/STAGE]",
		Aliases: []string{"remove"},
		Short:   "Remove a job with all that it has, or a stage",
		Long: `Remove a job with all that it has, on all nodes, or a stage of it; as rm -r does, at
once. What programs have open stays theirs until they close it.`,
		Args:              wants("JOB[/STAGE]"),
		ValidArgsFunction: p.names,
		RunE: func(c *cobra.Command, args []string) error {
			drop := func(d *control.Client, ctx context.Context, name string) error {
				return aboutShuffle(d.DropPool(ctx, name), name)
			}
			return removed(c, p, args[0], drop, func(w io.Writer) { fmt.Fprintf(w, "%s is removed\n", args[0]) })
		},
	}
}

// aboutShuffle adds the next step to an error about a job or a stage.
func aboutShuffle(err error, name string) error {
	job, _, ofStage := strings.Cut(name, "/")
	switch {
	case !errors.Is(err, meta.ErrNotExist), errors.Is(err, meta.ErrNoPool):
		return err
	case ofStage && !errors.Is(err, meta.ErrNoJob):
		return failure.Hint(err, "see the stages of a job with: rankfs shuffle show %s", job)
	}
	return failure.Hint(err, "see which jobs there are with: rankfs shuffle ls")
}

// names completes the name of a job; after its slash, of a stage.
func (p shuffleCommands) names(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	job, _, ofStage := strings.Cut(begun, "/")
	if !ofStage {
		return complete(c, p, args, (*control.Client).PoolJobs, func(list []control.PoolJob) (names []cobra.Completion) {
			for _, j := range list {
				names = append(names, cobra.CompletionWithDesc(j.Job, terminal.Plural(j.Stages, "stage")))
			}
			return names
		})
	}
	ask := func(d *control.Client, ctx context.Context) (control.PoolJobDetail, error) {
		return d.PoolJob(ctx, job)
	}
	return complete(c, p, args, ask, func(j control.PoolJobDetail) (names []cobra.Completion) {
		for _, g := range j.All {
			names = append(names, cobra.CompletionWithDesc(j.Job+"/"+g.Stage, g.State))
		}
		return names
	})
}
