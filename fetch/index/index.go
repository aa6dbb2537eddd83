package index

// An Extent is a run of bytes in one of the source's files.
type Extent struct {
	File uint32 // an index into the file table
	Off  int64
	Len  int64
}

// A File is one file of the source. Only the source knows the meaning of Path.
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

// Merge joins each extent to the one before it where the two stand side by
// side in one file. It works in place and returns the shorter slice.
func Merge(extents []Extent) []Extent {
	kept := extents[:0]
	for _, e := range extents {
		if n := len(kept); n > 0 && kept[n-1].File == e.File && kept[n-1].Off+kept[n-1].Len == e.Off {
			kept[n-1].Len += e.Len
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
