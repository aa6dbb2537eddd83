package control

import (
	"encoding/json"

	"rankfs/meta"
)

// An event is one line of an answer: any number of progress, then one result
// or one error. An answer that ends without either was cut short.
type event struct {
	Progress *Progress       `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *meta.Told      `json:"error,omitempty"`
}

// A named is the request of every operation on one dataset or node.
type named struct {
	Name string `json:"name"`
}

// Progress says how far a long operation has come.
type Progress struct {
	Doing   string `json:"stage"` // "copying", "indexing", "verifying", "warming", "moving"
	Bytes   int64  `json:"bytes"`
	Total   int64  `json:"total"`
	Records uint64 `json:"records"`
}
