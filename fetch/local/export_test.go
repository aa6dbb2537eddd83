package local

import "io"

// EachLine is eachLine without progress.
func EachLine(r io.ReaderAt, size int64, buf []byte, add func(off, n int64) error) error {
	return eachLine(r, size, buf, func(int64) error { return nil }, add)
}

// ChunkBytes is what a chunk holds if no record is longer.
const ChunkBytes = chunkBytes

// KeptOpen is how many files of a tree stay open.
const KeptOpen = keptOpen
