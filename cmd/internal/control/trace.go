package control

import "time"

// A LearnRequest keeps a trace of opens for a dataset.
type LearnRequest struct {
	View string `json:"view"`           // of which the trace is, as this node has seen it
	Text string `json:"text,omitempty"` // the trace, if it is not that
	For  string `json:"for,omitempty"`  // the dataset; empty: that of the view
}

// A Trace is the order in which a rank opened batches, kept for a dataset.
type Trace struct {
	Dataset  string    `json:"dataset"`
	ViewName           // of which it was learnt
	Rank     uint64    `json:"rank"`
	Steps    uint64    `json:"steps"` // of that view
	Opens    uint64    `json:"opens"`
	Again    float64   `json:"again"` // a step was mostly opened again after so many parts of the steps
	Learnt   time.Time `json:"learnt"`
	Text     string    `json:"text,omitempty"` // what /.rankfs/trace had
}
