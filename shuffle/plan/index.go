package plan

// An Index is the part of a dataset's index that plans need. It never changes, and may be
// used concurrently.
type Index interface {
	// Fingerprint names the content: of equal ones all records are alike.
	Fingerprint() string
	Records() uint64
	Bytes() int64
	// ChunkOf is the chunk that holds a record.
	ChunkOf(record uint64) int
	// ChunkRecords are the records of a chunk, which follow one another.
	ChunkRecords(chunk int) (first, n uint64)
	Replicas
}
