package catalog

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"

	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/fetch/splits"
	"rankfs/meta/state"
)

// A Reporter is told how far something has come.
type Reporter func(control.Progress)

// A chunked source can say where its chunks are long before it has counted the
// records in them.
type chunked interface {
	ByChunk(ctx context.Context) (bool, error)
}

// A copying source brings its bytes here before it can scan them.
type copying interface {
	Copy(ctx context.Context, done func(bytes, total int64)) error
}

// A reusing source can take what has not changed from the index of an earlier version,
// which stays open until Scan returns.
type reusing interface {
	Reuse(x *index.Index)
}

// A divided source has other nodes look through splits of it.
type divided interface {
	Divide(among []splits.Helper)
}

// A madeOfStage source is a stage of the shuffle pool, which the cluster keeps while a dataset is
// made of it. Scan has found its number, and of which generation it was.
type madeOfStage interface {
	Stage() (number, generation uint64)
}

// maxHelpers is how many other nodes are asked to help with an index. What they find is
// put together by one goroutine, which is no faster with more.
const maxHelpers = 16

// helpers are other nodes that are up, are not drained and know the call. A node of the
// release before would hang up, so none is asked while there may be one of those.
func (c *Catalog) helpers() (all []splits.Helper) {
	if c.config.Find == nil || c.config.State.Version() < state.Splits {
		return nil
	}
	for _, n := range c.config.State.Nodes() {
		if n.Up && !n.Drained && n.ID != c.config.Self {
			all = append(all, splits.Helper{Host: n.Host, Find: func(ctx context.Context, scheme string, request []byte, w io.Writer) error {
				return c.config.Find(ctx, n.ID, scheme, request, w)
			}})
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), maxHelpers)]
}

// buildIndex makes the index of a source, which is kept until release at least. Earlier
// is a version that it may have records of; nil if there is none.
func (c *Catalog) buildIndex(ctx context.Context, src fetch.Source, byChunk bool, earlier *batch.Version, report Reporter) (hash string, size int64, err error) {
	path, err := c.indexes.create()
	if err != nil {
		return "", 0, err
	}
	defer c.indexes.abandon(path)
	if s, ok := src.(copying); ok {
		err := s.Copy(ctx, func(bytes, total int64) {
			report(control.Progress{Doing: "copying", Bytes: bytes, Total: total})
		})
		if err != nil {
			return "", 0, err
		}
	}
	if s, ok := src.(chunked); ok && byChunk {
		if _, err := s.ByChunk(ctx); err != nil {
			return "", 0, err
		}
	}
	if s, ok := src.(reusing); ok && earlier != nil {
		s.Reuse(earlier.Index)
		defer runtime.KeepAlive(earlier)
	}
	if s, ok := src.(divided); ok {
		s.Divide(c.helpers())
	}
	err = fetch.Build(ctx, src, path, func(bytes, total int64, records uint64) {
		report(control.Progress{Doing: "indexing", Bytes: bytes, Total: total, Records: records})
	})
	if err != nil {
		return "", 0, err
	}
	return c.indexes.add(path)
}
