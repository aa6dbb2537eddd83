package meta

// A Key names the content of a batch or of a chunk: equal keys mean equal bytes, on any
// machine and after any restart. The series is that of a plan, of the chunks of one version
// of a dataset, or of a part of the shuffle pool.
type Key struct {
	Series     [16]byte
	Rank, Step uint64
}
