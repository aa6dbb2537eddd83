package hdfs

import (
	"context"
	"os"
)

// Copies keeps files of HDFS on disks of this host as a whole, by their keys, in
// granules of 1 MiB. Its methods may be called concurrently.
type Copies interface {
	// Take returns the copy of that key and size for one more user. If there is none
	// make makes it. Take waits for that and calls told with how many bytes are there now
	// and then; if told is nil it does not wait, and the error wraps meta.ErrBusy until
	// the copy is whole.
	Take(ctx context.Context, key string, size int64, make func(context.Context, Unfinished) error, told func(bytes int64)) (Copy, error)
	// Retain sets the copies that are wanted. Others are removed when they have no user.
	Retain(keys map[string]bool)
	// Close interrupts the making of copies. None is in use any more.
	Close()
}

// An Unfinished copy is being made.
type Unfinished interface {
	// Begin takes all of the copy's room on the disk: a disk that is too small is
	// found out before anything is fetched.
	Begin(ctx context.Context) error
	// Match reports whether an earlier attempt has written granule i.
	Match(i int) (bool, error)
	// Put writes granule i. It may be called concurrently, for different ones.
	Put(i int, granule []byte) error
}

// A Copy is whole and open until Release. Its methods may be called concurrently.
type Copy interface {
	// File has the bytes, of which those of a granule are right once it is proven.
	File() *os.File
	Proven(i int) bool
	// Prove proves granule i. If its bytes are not right fetch fetches them again.
	Prove(ctx context.Context, i int, fetch func(granule []byte) error) error
	Release()
}

const (
	// CopyFolder is the folder of copies.
	CopyFolder = "copies"
	// CopySuffix ends the names of copies that are whole.
	CopySuffix = "mdb"

	granule = 1 << 20
)

// granules is the number of granules of a copy of that size, and lengthOf the length of one.
func granules(size int64) int { return int((size + granule - 1) / granule) }

func lengthOf(i int, size int64) int64 { return min(granule, size-int64(i)*granule) }
