package plan

import "encoding/binary"

// A Version is one version of a dataset, with what its plans remember together.
//
// Two indexes of the same content may say that replicas are elsewhere. So plans that
// go by locality go by the hash of the index, all others by its fingerprint.
type Version struct {
	index Index
	hash  [32]byte // of the index's file

	divisions  divisions  // of epochs of chunks
	allotments allotments // of chunks to hosts
}

// NewVersion is the version that an index is of, whose file has such a hash.
func NewVersion(x Index, hash [32]byte) *Version { return &Version{index: x, hash: hash} }

// Seed makes the owners of the chunks of one dataset independent of another's.
func Seed(hash [32]byte) uint64 { return binary.LittleEndian.Uint64(hash[:]) }
