package gathering

import (
	"context"
	"errors"

	"rankfs/meta"
	"rankfs/shuffle/merging"
)

// Bring implements merging.Feed.
func (p *Column) Bring(ctx context.Context, i int, off int64, dst []byte, failed *merging.Failures) (node string, err error) {
	for {
		from, err := p.from([]int{i}, failed)
		if err != nil {
			return "", err
		}
		s := from[0]
		err = p.Nodes.Portion(ctx, s.Node, p.Request(s.Maps, s.Hurry), p.Each[i], off, dst)
		switch {
		case err == nil, ctx.Err() != nil:
			return s.Node, err
		case !errors.Is(err, meta.ErrCorrupt) || !p.gaveUp(ctx, s.Node, s.Maps):
			p.failed(failed, s, err)
		}
	}
}

// Look implements merging.Feed.
func (p *Column) Look(ctx context.Context, i int, node string) error {
	return p.Nodes.Look(ctx, node, p.Request([]int{i}, false))
}

// GaveUp implements merging.Feed.
func (p *Column) GaveUp(ctx context.Context, i int, node string) bool {
	return p.gaveUp(ctx, node, []int{i})
}
