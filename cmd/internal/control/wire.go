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
