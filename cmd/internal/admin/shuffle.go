package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pool"
	"rankfs/shuffle/report"
)

// The shuffles answer about the shuffle pool.
type shuffles struct {
	pool  *pool.Pool // nil: this node has none
	state *state.Machine
}

// ready waits until this node knows what the cluster knows. One without a pool refuses.
func (n *shuffles) ready(ctx context.Context) error {
	if n.pool == nil {
		return meta.Worded(meta.ErrNoPool, "the shuffle pool of this mount does not exist; mount it with --pool-ram SIZE")
	}
	return n.pool.Know(ctx)
}

// PoolJobs are all jobs, by name.
func (n *shuffles) PoolJobs(ctx context.Context) ([]control.PoolJob, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	jobs, counts := []control.PoolJob{}, n.pool.Count()
	for _, j := range n.state.PoolJobs() {
		jobs = append(jobs, n.describe(j, counts[j.Number]))
	}
	return jobs, nil
}

func (n *shuffles) describe(j state.PoolJob, c pool.Count) control.PoolJob {
	d := control.PoolJob{
		Job: j.Name, UID: j.UID, Stages: c.Stages, Made: time.Unix(0, j.Made).UTC(), Held: j.Held,
		Quota: j.Quota, Kept: n.state.PoolBytes(j.Number), Users: []string{}, Datasets: j.Datasets, PoolTally: c.PoolTally,
	}
	for id := range j.Users {
		d.Users = append(d.Users, cmp.Or(n.state.HostOf(id), id))
	}
	slices.Sort(d.Users)
	if at, ends := j.End(); ends {
		at = at.UTC()
		d.Ends = &at
	}
	return d
}

// job finds a job for its owner, or an admin.
func (n *shuffles) job(ctx context.Context, u control.User, name string) (*pool.Job, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	j, err := n.pool.Job(ctx, name)
	switch {
	case errors.Is(err, meta.ErrNotExist):
		return nil, meta.Worded(meta.ErrNoJob, "%w", err)
	case err != nil:
		return nil, err
	}
	if owner, _ := j.Owner(); owner != u.UID && !u.Admin {
		return nil, meta.Worded(meta.ErrDenied, "job %s of the shuffle pool is user %d's; ask them, or root", name, owner)
	}
	return j, nil
}

// stage finds JOB/STAGE.
func (n *shuffles) stage(ctx context.Context, u control.User, name string) (*pool.Stage, error) {
	job, stage, err := split(name)
	if err != nil {
		return nil, err
	}
	j, err := n.job(ctx, u, job)
	if err != nil {
		return nil, err
	}
	return j.Stage(ctx, stage)
}

// split splits JOB/STAGE.
func split(name string) (job, stage string, err error) {
	job, stage, _ = strings.Cut(name, "/")
	if job == "" || stage == "" {
		return "", "", fmt.Errorf("stage %q of the shuffle pool %w: write JOB/STAGE, as words/count", name, meta.ErrInvalid)
	}
	return job, stage, nil
}

// PoolJob is a job with its stages.
func (n *shuffles) PoolJob(ctx context.Context, u control.User, name string) (control.PoolJobDetail, error) {
	j, err := n.job(ctx, u, name)
	if err != nil {
		return control.PoolJobDetail{}, err
	}
	names, err := j.Stages(ctx)
	if err != nil {
		return control.PoolJobDetail{}, err
	}
	d := control.PoolJobDetail{All: []control.PoolStage{}, Used: n.pool.Used()[j.Number()]}
	var sum pool.Count
	for _, name := range names {
		r, err := n.report(ctx, j, name)
		if errors.Is(err, meta.ErrNotExist) {
			continue // it has just gone
		}
		if err != nil {
			return control.PoolJobDetail{}, err
		}
		sum.Add(r)
		d.All = append(d.All, describeStage(r))
	}
	is, ok := n.state.PoolJob(name)
	if !ok {
		return control.PoolJobDetail{}, meta.Worded(meta.ErrNoJob, "job %s of the shuffle pool does not exist any more", name)
	}
	d.PoolJob = n.describe(is, sum)
	return d, nil
}

func (n *shuffles) report(ctx context.Context, j *pool.Job, name string) (r report.Report, err error) {
	g, err := j.Stage(ctx, name)
	if err != nil {
		return r, err
	}
	return g.Report()
}

func describeStage(r report.Report) control.PoolStage {
	var c pool.Count
	c.Add(r)
	d := control.PoolStage{Job: r.Job.Name, Stage: r.Stage.Name, Resets: r.Stage.Resets, PoolTally: c.PoolTally}
	d.State, d.Why = r.State()
	if r.Stage.Specified() {
		d.Spec = r.Stage.Spec.String()
	}
	return d
}

// PoolStage is a stage with all that is known of it.
func (n *shuffles) PoolStage(ctx context.Context, u control.User, name string) (control.PoolStageDetail, error) {
	g, err := n.stage(ctx, u, name)
	if err != nil {
		return control.PoolStageDetail{}, err
	}
	r, err := g.Report()
	if err != nil {
		return control.PoolStageDetail{}, err
	}
	g.Weigh(ctx, &r)
	d := control.PoolStageDetail{
		PoolStage: describeStage(r), Text: r.String(), Copies: r.Wanted, Nodes: []control.PoolNode{},
		OpenMaps: first(r.Open), LostMaps: first(r.Lost), AwayMaps: first(r.Away), PartBytes: []int64{}, Waits: []control.PoolWait{},
	}
	if len(r.Parts) <= control.MaxParts {
		d.PartBytes = append(d.PartBytes, r.Parts...)
	}
	for _, k := range r.Nodes {
		d.Nodes = append(d.Nodes, control.PoolNode{ID: k.Node, Host: n.state.HostOf(k.Node), Up: k.Up, Maps: k.Maps, Bytes: k.Bytes})
	}
	for _, w := range r.Waits {
		d.Waits = append(d.Waits, control.PoolWait{Part: w.Part.String(), Thread: w.Thread, Since: w.Since.UTC(), Sealing: w.Sealing})
	}
	return d, nil
}

// first are as many as a list may have.
func first[T any](list []T) []T {
	return append([]T{}, list[:min(len(list), control.MaxListed)]...)
}

// MakePool makes a job, or a stage with its job, for a user.
func (n *shuffles) MakePool(ctx context.Context, u control.User, r control.PoolRequest) error {
	name, stage, ofStage := strings.Cut(r.Name, "/")
	if err := n.ready(ctx); err != nil {
		return err
	}
	if pool.Fixed(stage) {
		return meta.Worded(meta.ErrExist, "%s of job %s exists already, as in every job; choose another name", stage, name)
	}
	if r.Spec != "" { // what is refused leaves no job behind
		if err := meta.CheckStage(r.Spec); err != nil {
			return err
		}
	}
	if ofStage {
		if _, _, err := split(r.Name); err != nil {
			return err
		}
		if err := meta.CheckName(stage); err != nil {
			return err
		}
	}
	j, err := n.pool.MakeJob(ctx, name, u.UID, u.GID, r.Quota)
	switch exists := errors.Is(err, meta.ErrExist); {
	case exists && r.Quota != 0:
		return fmt.Errorf("%w; give it another quota with: rankfs shuffle quota %s SIZE", err, name)
	case exists && ofStage:
		j, err = n.job(ctx, u, name)
	}
	if err != nil || !ofStage {
		return err
	}
	g, err := j.MakeStage(ctx, stage)
	if errors.Is(err, meta.ErrExist) && r.Spec != "" {
		g, err = j.Stage(ctx, stage)
	}
	if err != nil || r.Spec == "" {
		return err
	}
	return g.Specify(ctx, r.Spec)
}

// SetQuota gives a job another quota.
func (n *shuffles) SetQuota(ctx context.Context, u control.User, r control.PoolRequest) error {
	j, err := n.job(ctx, u, r.Name)
	if err != nil {
		return err
	}
	return j.SetQuota(ctx, r.Quota)
}

// SealStage says that no more maps come.
func (n *shuffles) SealStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	return n.change(ctx, u, name, (*pool.Stage).Seal)
}

// ResetStage begins a stage anew.
func (n *shuffles) ResetStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	return n.change(ctx, u, name, (*pool.Stage).Reset)
}

func (n *shuffles) change(ctx context.Context, u control.User, name string, do func(*pool.Stage, context.Context) error) (control.PoolStage, error) {
	g, err := n.stage(ctx, u, name)
	if err == nil {
		err = do(g, ctx)
	}
	if err != nil {
		return control.PoolStage{}, err
	}
	r, err := g.Report()
	return describeStage(r), err
}

// DropPool removes a job with all that it has, or a stage.
func (n *shuffles) DropPool(ctx context.Context, u control.User, name string) error {
	if strings.Contains(name, "/") {
		g, err := n.stage(ctx, u, name)
		if err != nil {
			return err
		}
		return g.Remove(ctx)
	}
	j, err := n.job(ctx, u, name)
	if err != nil {
		return err
	}
	return j.Remove(ctx)
}

// stats has the figures of the pool on this node, and of all of it; nil if it has none.
func (n *shuffles) stats() *control.Pool {
	if n.pool == nil {
		return nil
	}
	s := n.pool.Stats()
	return &s
}

// faults are the faults of jobs.
func (n *shuffles) faults() (all []fault) {
	if n.pool == nil {
		return nil
	}
	counts := n.pool.Count()
	for _, j := range n.state.PoolJobs() {
		c := counts[j.Number]
		for _, one := range []struct {
			kind, what string
			n          int
		}{
			{"lost", "maps of job %s of the shuffle pool are lost: %d have no copy left; see: rankfs shuffle show %[1]s", c.Lost},
			{"away", "maps of job %s of the shuffle pool cannot be read: all copies of %d are on nodes that are down", c.Away},
			{"copies", "copies of maps of job %s of the shuffle pool are missing: %d, which are made as soon as a host can take them", c.Missing},
		} {
			if one.n == 0 {
				continue
			}
			if len(all) == maxWarned {
				return append(all, fault{"shuffle", "", "maps of more jobs of the shuffle pool are lost or have too few copies; see: rankfs shuffle ls"})
			}
			all = append(all, fault{one.kind, j.Name, fmt.Sprintf(one.what, j.Name, one.n)})
			break // the worst of a job says enough
		}
	}
	return all
}

// shuffleTable is a line for each job, for programs to read.
func (n *shuffles) shuffleTable() []byte {
	counts := n.pool.Count()
	jobs := n.state.PoolJobs()
	return columns(func(line func(...any)) {
		line("job", "uid", "stages", "maps", "bytes", "copies_missing", "maps_away", "maps_lost", "used_on", "ends")
		for _, j := range jobs[max(0, len(jobs)-maxLines):] {
			c, ends := counts[j.Number], "-"
			if at, ok := j.End(); ok {
				ends = stamp(at.UnixNano())
			}
			line(j.Name, j.UID, c.Stages, c.Maps, c.Bytes, c.Missing, c.Away, c.Lost, len(j.Users), ends)
		}
	})
}
