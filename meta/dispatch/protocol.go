package dispatch

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// The calls by which readers ask the leader.
const (
	CallTake = "/queue"
	// CallPeek asks what CallTake would come to, and changes nothing. A leader of an
	// older release does not know the call; its readers are then always ready.
	CallPeek = "/queue/peek"
)

// A TakeRequest says that a reader has finished the unit that it holds, if Finish,
// and wants another. Requests of the same Number are one request, sent again.
type TakeRequest struct {
	View       string `json:"view"`
	Generation uint64 `json:"generation"` // of the dataset
	Reader     string `json:"worker"`     // the reader's id
	Node       string `json:"node"`
	Rank       uint64 `json:"rank"`
	UID        uint32 `json:"uid,omitempty"` // the reader's user
	Number     uint64 `json:"turn"`
	Finish     bool   `json:"finish,omitempty"`
	Wait       bool   `json:"wait,omitempty"` // at the leader, while no unit is free
}

// A TakeReply is a unit, or that the reader has to wait for one, or neither: the
// queue is over.
type TakeReply struct {
	Unit int64 `json:"unit"` // -1: none
	Wait bool  `json:"wait,omitempty"`
	Lost bool  `json:"lost,omitempty"` // the unit that was finished counts for another reader
	// Aside, where the queue is over, is how many of its units were set aside.
	Aside int `json:"aside,omitempty"`
}

// A PeekReply says whether a take would have its reply at once.
type PeekReply struct {
	Ready bool          `json:"ready,omitempty"`
	After time.Duration `json:"after,omitempty"` // if not ready: peek again then at the latest
}

// BatchName is the path, below its view, of the batch that a unit is.
func BatchName(unit, ranks uint64) string {
	return fmt.Sprintf("rank-%d/batch-%06d", unit%ranks, unit/ranks)
}

// BatchOf is BatchName for a view by its full name, which has all options.
func BatchOf(view string, unit int64) string {
	dataset, options, _ := meta.SplitView(view)
	v, err := meta.View{Dataset: dataset}.With(options)
	if err != nil {
		return fmt.Sprint("unit ", unit)
	}
	return BatchName(uint64(unit), v.Ranks)
}
