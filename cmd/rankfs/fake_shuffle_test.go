package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// PoolJobs are those that were made, and on a node with the pool two more: words, of
// root, with stages in all states, and carol's.
func (n *fakeNode) PoolJobs(context.Context) ([]control.PoolJob, error) {
	if n.config.PoolRAM == 0 {
		return nil, meta.Worded(meta.ErrNoPool, "the shuffle pool of this mount does not exist; mount it with --pool-ram SIZE")
	}
	ends := epoch.Add(3 * time.Hour)
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []control.PoolJob{{Job: "carols", UID: 4711, Made: epoch, Users: []string{}, Ends: &ends}}
	for _, name := range n.mu.pool {
		if name == "words" {
			list = append(list, control.PoolJob{
				Job: name, Stages: 3, Made: epoch, Held: true, Quota: 10 << 30, Kept: 6 << 30, Users: []string{"node1", "node2", "node3"},
				PoolTally: control.PoolTally{Maps: 1026, Bytes: 3 << 30, Missing: 2, Lost: 1},
			})
		}
	}
	return list, nil
}

func (n *fakeNode) poolJob(u control.User, name string) (control.PoolJob, error) {
	list, err := n.PoolJobs(context.Background())
	if err != nil {
		return control.PoolJob{}, err
	}
	i := slices.IndexFunc(list, func(j control.PoolJob) bool { return j.Job == name })
	if i < 0 {
		return control.PoolJob{}, fmt.Errorf("job %s of the shuffle pool %w", name, meta.ErrNoJob)
	}
	if name == "carols" && !u.Admin {
		return control.PoolJob{}, meta.Worded(meta.ErrDenied, "job %s of the shuffle pool is user 4711's; ask them, or root", name)
	}
	return list[i], nil
}

func (n *fakeNode) PoolJob(_ context.Context, u control.User, name string) (control.PoolJobDetail, error) {
	j, err := n.poolJob(u, name)
	d := control.PoolJobDetail{PoolJob: j, Used: 1 << 30, All: []control.PoolStage{}}
	for _, stage := range []string{"count", "lost", "sort"} {
		if j.Stages > 0 {
			d.All = append(d.All, fakeStage(name, stage).PoolStage)
		}
	}
	return d, err
}

// fakeStage is open and has readers that wait, is sealed, or is lost.
func fakeStage(job, name string) control.PoolStageDetail {
	d := control.PoolStageDetail{
		PoolStage: control.PoolStage{
			Job: job, Stage: name, State: "sealed", Spec: "maps=1024 parts=8 copies=2",
			PoolTally: control.PoolTally{Maps: 1024, Bytes: 3 << 30},
		},
		Copies: 2, Text: "state      sealed\n", Waits: []control.PoolWait{},
		Nodes: []control.PoolNode{{ID: "a", Host: "node1", Up: true, Maps: 1024, Bytes: 3 << 30}, {ID: "b", Host: "node2", Maps: 7, Bytes: 1 << 20}},
	}
	switch name {
	case "sort":
		d.PoolStage = control.PoolStage{Job: job, Stage: name, State: "open", Why: "2 of 4 maps are committed; not yet 1, 3", Spec: "maps=4 parts=1 copies=2", PoolTally: control.PoolTally{Maps: 2, Bytes: 10}}
		d.Text, d.Nodes, d.OpenMaps = "state      open: "+d.Why+"\n", nil, []uint64{1, 3}
		for i := range 10 {
			d.Waits = append(d.Waits, control.PoolWait{Part: fmt.Sprintf("part-%06d", i), Since: epoch.Add(2*time.Hour + time.Duration(i)*time.Minute), Sealing: i < 9})
		}
	case "lost":
		d.PoolStage = control.PoolStage{Job: job, Stage: name, State: "lost", Why: "1 maps have no copy left", PoolTally: control.PoolTally{Missing: 2, Lost: 1}}
		d.LostMaps = []uint64{3}
	}
	return d
}

func (n *fakeNode) PoolStage(_ context.Context, u control.User, name string) (control.PoolStageDetail, error) {
	job, stage, _ := strings.Cut(name, "/")
	j, err := n.poolJob(u, job)
	if err == nil && (j.Stages == 0 || !slices.Contains([]string{"count", "lost", "sort"}, stage)) {
		err = fmt.Errorf("stage %s of job %s %w", stage, job, meta.ErrNotExist)
	}
	return fakeStage(job, stage), err
}

func (n *fakeNode) MakePool(_ context.Context, _ control.User, r control.PoolRequest) error {
	if _, err := n.PoolJobs(context.Background()); err != nil {
		return err
	}
	if r.Spec != "" {
		if err := meta.CheckStage(r.Spec); err != nil {
			return err
		}
	}
	name, _, ofStage := strings.Cut(r.Name, "/")
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.mu.pool, name) {
		if !ofStage {
			return fmt.Errorf("job %s of the shuffle pool %w", name, meta.ErrExist)
		}
		return nil
	}
	n.mu.pool = append(n.mu.pool, name)
	return nil
}

func (n *fakeNode) SetQuota(_ context.Context, u control.User, r control.PoolRequest) error {
	_, err := n.poolJob(u, r.Name)
	return err
}

func (n *fakeNode) SealStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	g, err := n.PoolStage(ctx, u, name)
	if err == nil && g.State == "open" {
		err = fmt.Errorf("stage %s %w: 2 of its 4 maps are committed", g.Stage, meta.ErrBusy)
	}
	return g.PoolStage, err
}

func (n *fakeNode) ResetStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	g, err := n.PoolStage(ctx, u, name)
	return control.PoolStage{Job: g.Job, Stage: g.Stage, State: "open", Resets: 1}, err
}

func (n *fakeNode) DropPool(_ context.Context, u control.User, name string) error {
	job, _, _ := strings.Cut(name, "/")
	_, err := n.poolJob(u, job)
	return err
}

// fakePool is in the status of a node that has the pool.
func (n *fakeNode) fakePool() *control.Pool {
	if n.config.PoolRAM == 0 {
		return nil
	}
	return &control.Pool{
		Used: 1 << 30, Budget: n.config.PoolRAM, Waiting: 10, Jobs: 2, Stages: 3,
		PoolTally: control.PoolTally{Maps: 1026, Bytes: 3 << 30, Missing: 2, Lost: 1},
	}
}
