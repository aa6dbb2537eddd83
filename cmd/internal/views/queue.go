package views

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"rankfs/fs"
	"rankfs/meta/dispatch"
)

// A queueReader is one open queue file of a view, as lines. It implements fs.Queue.
type queueReader struct {
	*dispatch.Reader
	view *View
	rank uint64
}

// Queue is for a rank that takes batches as they come.
func (v *View) Queue(rank uint64, uid uint32) fs.Queue {
	r := v.queues.readers.Open(v.key, v.name, v.dataset.Generation, rank, uid)
	return &queueReader{r, v, rank}
}

// Next finishes the batch before and takes another.
func (q *queueReader) Next(ctx context.Context, wait bool) ([]byte, error) {
	if err := q.view.settle(ctx, nil, q.rank); err != nil {
		return nil, err
	}
	unit, over, err := q.Reader.Next(ctx, wait)
	if err != nil || over {
		return nil, err
	}
	return q.view.describeUnit(unit), nil
}

// Close gives back the batch that was taken last. A close(2) does not wait for the
// cluster to agree.
func (q *queueReader) Close() {
	all := q.view.queues
	all.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(all.tasks.ctx), leaveTime)
		defer cancel()
		if err := q.Leave(ctx); err != nil {
			all.log.Warn("a batch was not given back to its queue", "view", q.view.key, "cause", err)
		}
	})
}

// leaveTime is how long an unmount may wait for the cluster to take work back. What
// the cluster was not told comes back when this node is seen down.
const leaveTime = 2 * time.Second

// describeUnit is the line of a batch.
func (v *View) describeUnit(unit uint64) []byte {
	a := v.now()
	rank, step := unit%a.Cut().Ranks, unit/a.Cut().Ranks
	size, where := a.Size(rank, step), "remote"
	if 2*a.Holders(a.host, rank, step).On(a.host) > size || !a.Version.Source.Remote {
		where = "local"
	}
	path := filepath.Join(v.queues.mount, "datasets", v.name, dispatch.BatchName(unit, a.Cut().Ranks))
	return fmt.Appendf(nil, "%s %d %d %s\n", path, size, a.Records(rank, step), where)
}

// Units are the batches that the queue of a view hands out, for this node as the leader.
func (vs *Views) Units(ctx context.Context, view string, rank uint64) (dispatch.Units, error) {
	v, err := vs.Open(view)
	if err != nil {
		return dispatch.Units{}, err
	}
	if err := v.settle(ctx, nil, rank); err != nil {
		return dispatch.Units{}, err
	}
	cut := v.now().Cut()
	return dispatch.Units{
		Ranks: cut.Ranks, Steps: cut.Steps(), Seed: v.asked.Seed,
		Holders: func(rank, step uint64) map[string]int64 { a := v.now(); return a.Holders(a.host, rank, step) },
	}, nil
}
