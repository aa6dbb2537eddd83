// Package index is the table of a dataset's records: where each one stands
// and how long it is, in the order of the source, grouped into chunks.
//
// An index is made once per version of a source, kept in one file, and mapped.
// Nothing in it is proportional to the dataset on the Go heap.
package index

// An Extent is a run of bytes in one of the source's files.
type Extent struct {
	File uint32 // an index into the file table
	Off  int64
	Len  int64
}

// A File is one file of the source. What Path means is the source's business.
type File struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	Stamp string `json:"stamp,omitempty"` // identifies its content, as the source sees fit
}

// A Chunk is a contiguous run of records, the unit of locality.
type Chunk struct {
	First   uint64   `json:"first"`
	Records uint64   `json:"records"`
	Bytes   int64    `json:"bytes"`
	Hosts   []string `json:"hosts,omitempty"`
}
