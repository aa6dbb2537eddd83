package cache

import (
	"context"
	"io"
	"iter"

	"rankfs/meta"
)

// A Series is batches, numbered by rank and step: the cache has no other source. They are
// those of a plan, the chunks of one version of a dataset, which are all of rank 0, or one
// part of a stage of the shuffle pool, at step 0. Its fields never change, and all that it has
// may be called concurrently.
//
// Next, Size and Fill may wait, for a source too, and Key may take its time. All else is
// called under the cache's lock: it waits for nothing, and takes no lock that is held while
// anything is waited for.
type Series struct {
	ID [16]byte // on any machine and after any restart
	// Dataset names the dataset of all records: a codec that packs one of its batches
	// well packs the others well.
	Dataset string
	Job     Job // for which batches are opened, as far as is known
	Steps   uint64
	Shared  bool // they are inputs, which fills of other series copy from, and have none
	Once    bool // no other epoch has the same batches
	Ahead   bool // a batch may be made ready before it is opened
	Keys
	// Find is the inverse of Key, if it is quick to say.
	Find func(k Key) (rank, step uint64, ok bool)
	// Own says, of a series that is shared, which of its batches are the only ones that this node
	// may make ready ahead; nil: all, as of what ranks open.
	Own func(step uint64) bool
	Course
	Filler
}

// Keys are the names of batches, on any machine and after any restart.
type Keys interface {
	// Key names the content of a batch.
	Key(rank, step uint64) Key
	// Known is Key, if it is quick to say. Mostly it is once Key has said it.
	Known(rank, step uint64) (k Key, ok bool)
}

// A Job is the readers of one series, and then of the next; or those of several series that
// say so. What the workers do for it counts by its weight.
type Job struct {
	ID     [16]byte
	Weight float64 // above zero
}

// JobOf is the job of those that read one series, whose work counts as that of others.
func JobOf(series [16]byte) Job { return Job{series, 1} }

// A Course says which batches the ranks will open in another epoch.
type Course interface {
	// Next is the series of the epoch to come, nil if that is not known.
	Next() *Series
}

// A Filler makes batches.
type Filler interface {
	Size(rank, step uint64) int64
	// Fill writes the batch into dst, whose length is Size, without keeping dst, until
	// the sequence that it returns has come to its end. At each input that it copies from
	// it stops, and goes on when the input's Copy was called. An error is the last that
	// comes; there is one rather than a short batch.
	Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[Input, error]
}

// An Input is a batch of a shared series, from which a fill copies.
type Input struct {
	Series     *Series
	Rank, Step uint64
	InOrder    bool // inputs are copied from one after the other, as they stand in Series
	Copier
}

// A Copier is the fill that has stopped at an input.
type Copier interface {
	// Context is done when the input is not needed any more.
	Context() context.Context
	// Copy has the fill copy from the input, which is in a tier. If it could not be had,
	// the fill goes on without it, or fails. An error that wraps meta.ErrNoSpace means
	// that there is no room for it: then the source has the bytes.
	Copy(input io.ReaderAt, tier string, err error)
}

// Whole is the sequence of a fill without inputs, which has ended.
func Whole(err error) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		if err != nil {
			yield(Input{}, err)
		}
	}
}

// A Key names the content of a batch: that of a rank and a step of a series, unless
// other series have it too and agree on another name.
type Key = meta.Key
