package record

import "unsafe"

// An entry is a record in the index by which records are sorted. Where it ends is found once
// more: what needs that reads the record anyway.
type entry struct {
	prefix uint64 // of what is left of its key, once as much was compared as others have too
	at     uint64 // in the map, or the slot of a key that was added up
}

// entryBytes is the room of a record in the index.
const entryBytes = int64(unsafe.Sizeof(entry{}))
