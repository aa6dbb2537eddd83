package state

import (
	"fmt"
	"unicode/utf8"

	"rankfs/meta"
)

const MaxReaderID = 64 // bytes

// A Reader is one open descriptor that units are taken by.
type Reader struct {
	ID    string
	Node  string
	Rank  uint64
	Unit  int64  // what it holds; -1 if nothing
	Since int64  // time of the cluster when it took that
	Units uint64 // that it has worked through, finished or lost
	Busy  int64  // nanoseconds that it held them
	Seen  int64  // time of the cluster of its last request
	Left  bool   `json:",omitempty"`
}

// A reader is a Reader and its last request. It stays when the reader has left:
// a request of it that comes late must not take a unit that would never be returned.
type reader struct {
	Reader
	Nonce uint64
	Last  TakenUnit
	era   uint64
}

func checkReader(id string) error {
	if id == "" || len(id) > MaxReaderID || !utf8.ValidString(id) {
		return fmt.Errorf("reader %q %w: use 1 to %d bytes of UTF-8", shorten(id), meta.ErrInvalid, MaxReaderID)
	}
	return nil
}
