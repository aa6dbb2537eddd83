package node

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
	view *settling
	rank uint64
}

// Queue is for a rank that takes batches as they come.
func (s *settling) Queue(rank uint64) fs.Queue {
	r := s.node.member.readers.Open(s.asked.String(), s.name, s.dataset.Generation, rank)
	return &queueReader{r, s, rank}
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
	n := q.view.node
	n.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), leaveTime)
		defer cancel()
		if err := q.Leave(ctx); err != nil {
			n.config.Log.Warn("a batch was not given back to its queue", "view", q.view.asked.String(), "cause", err)
		}
	})
}

// leaveTime is how long an unmount may wait for the cluster to take work back. What
// the cluster was not told comes back when this node is seen down.
const leaveTime = 2 * time.Second

// describeUnit is the line of a batch.
func (s *settling) describeUnit(unit uint64) []byte {
	v := s.view.Load()
	rank, step := unit%v.Cut().Ranks, unit/v.Cut().Ranks
	size, where := v.Size(rank, step), "remote"
	if 2*v.holders(rank, step).held(v.host) > size || !v.Version.Source.Remote {
		where = "local"
	}
	path := filepath.Join(s.node.config.Mount, "datasets", s.name, dispatch.BatchName(unit, v.Cut().Ranks))
	return fmt.Appendf(nil, "%s %d %d %s\n", path, size, v.Records(rank, step), where)
}

// units are what the queue of a view hands out, for this node as the leader.
func (n *Node) units(ctx context.Context, view string, rank uint64) (dispatch.Units, error) {
	s, err := n.open(view)
	if err != nil {
		return dispatch.Units{}, err
	}
	if err := s.settle(ctx, nil, rank); err != nil {
		return dispatch.Units{}, err
	}
	v := s.view.Load()
	return dispatch.Units{
		Ranks: v.Cut().Ranks, Steps: v.Cut().Steps(), Seed: s.asked.Seed,
		Holders: func(rank, step uint64) map[string]int64 { return v.holders(rank, step) },
	}, nil
}
