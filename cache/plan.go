package cache

import "context"

// A Plan is a view whose bytes can be had: the cache's only source.
//
// ID names the whole, Key the content of a batch: equal keys mean equal bytes,
// on any machine and after any restart. Find is the inverse of Key, if it is
// quick to say. Next is the plan of the epoch to come, nil if that is not known;
// it may take its time, the others not. Fill writes the batch into dst, whose
// length is Size, without keeping dst; it returns an error rather than a short
// batch. Once says that no other epoch has the same batches; Shared, that fills
// of other plans copy from them, by Part. Dataset names the dataset of all records:
// a codec that packs one of its batches well packs the others well. All methods may
// be called concurrently.
type Plan interface {
	ID() [16]byte
	Dataset() string
	Steps() uint64
	Key(rank, step uint64) Key
	Find(k Key) (rank, step uint64, ok bool)
	Next() Plan
	Once() bool
	Shared() bool
	Ahead(rank, step uint64) bool
	Size(rank, step uint64) int64
	Fill(ctx context.Context, rank, step uint64, dst []byte) error
}

// A Key names the content of a batch: that of a plan's rank and step, unless
// other plans have it too and agree on another name.
type Key struct {
	Plan       [16]byte
	Rank, Step uint64
}
