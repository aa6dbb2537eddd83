package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/record"
	"rankfs/shuffle/report"
)

// What parts weigh, before or after they are made, is in the tables of the maps. Nodes add
// up those of which they have copies, and send a number for each part.

// weighTime bounds how long that may take, as a person waits for it.
const weighTime = 2 * time.Second

// Weigh finds out how many bytes each part has.
func (g *Stage) Weigh(ctx context.Context, r *report.Report) {
	var commits []state.Commit
	for _, c := range g.config.State.Commits(g.number).All() {
		if len(c.Nodes) > 0 {
			commits = append(commits, c)
		}
	}
	switch parts := r.Stage.Spec.Parts; {
	case len(commits) == 0:
		return
	case r.Stage.Spec.Records.Ranges && !r.Stage.Sealed:
		r.Unweighed = errors.New("with by=range that is known once the stage is sealed")
		return
	case uint64(len(commits))*parts > maxRows, r.Stage.Spec.Records.Ranges && uint64(len(commits))*r.Stage.Spec.Pieces() > merging.MaxSpans:
		r.Unweighed = fmt.Errorf("%d maps of %d parts are too many to add up", len(commits), parts)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, weighTime)
	defer cancel()
	weigh := g.weigh
	if r.Stage.Spec.Records.Ranges {
		weigh, r.About = g.weighRanges, true
	}
	parts, err := weigh(ctx, r.Stage, commits)
	if err != nil {
		r.Unweighed = err
		return
	}
	r.Parts = parts
}

// weigh adds up the bytes of each part by the tables of the maps, each of which is looked at on
// one node that has a copy.
func (g *Stage) weigh(ctx context.Context, is state.PoolStage, commits []state.Commit) ([]int64, error) {
	f, err := g.files()
	if err != nil {
		return nil, err
	}
	p := g.pool.columns.column(f, &gathering.Column{Terms: gathering.TermsOf(is), Whole: true, Pieces: merging.Pieces{Maps: state.MapsOf(commits...)}})
	all := make([]int64, is.Spec.Parts)
	var mu sync.Mutex
	return all, p.Ask(ctx, p.Every(), func(s gathering.Demand) (err error) {
		some := make([]int64, len(all))
		if r := p.Request(s.Maps, s.Hurry); p.Own(s.Node) {
			err = p.all.copies.weigh(ctx, f, r, some)
		} else {
			err = p.all.peers.weighAt(ctx, s.Node, r, some)
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range some {
			all[i] += n
		}
		return nil
	})
}

// weighRanges is about what parts have that are ranges of keys.
func (g *Stage) weighRanges(ctx context.Context, is state.PoolStage, _ []state.Commit) ([]int64, error) {
	f, err := g.files()
	if err != nil {
		return nil, err
	}
	p := newPart(g.pool.columns.column(f, &gathering.Column{Terms: gathering.TermsOf(is)}), record.Spec(is.Spec.Records))
	p.rangeOf(is.Spec, g.config.State.Commits(g.number))
	return p.merged.Weights(ctx)
}

// State is the text of the file state, for a person.
func (g *Stage) State(ctx context.Context) ([]byte, error) {
	if err := g.Know(ctx); err != nil {
		return nil, err
	}
	r, err := g.Report()
	if err != nil {
		return nil, err
	}
	g.Weigh(ctx, &r)
	return []byte(r.String()), nil
}
