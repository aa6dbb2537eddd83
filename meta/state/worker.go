package state

import (
	"fmt"
	"unicode/utf8"

	"rankfs/meta"
)

const MaxWorkerID = 64 // bytes

// A Worker is one open descriptor that units are taken by.
type Worker struct {
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

// A worker is a Worker and its last request. It stays when the worker has left:
// a request of it that comes late must not take a unit that would never be returned.
type worker struct {
	Worker
	Nonce uint64
	Last  TakenUnit
	era   uint64
}

func checkWorker(id string) error {
	if id == "" || len(id) > MaxWorkerID || !utf8.ValidString(id) {
		return fmt.Errorf("worker %q %w: use 1 to %d bytes of UTF-8", shorten(id), meta.ErrInvalid, MaxWorkerID)
	}
	return nil
}
