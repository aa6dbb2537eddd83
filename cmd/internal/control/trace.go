package control

import (
	"context"
	"time"
)

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

// Traces asks for a summary of the trace that is kept for each dataset.
func (c *Client) Traces(ctx context.Context) ([]Trace, error) {
	return ask[[]Trace](ctx, c, "traces", struct{}{}, nil)
}

// Trace asks for the whole trace of one dataset.
func (c *Client) Trace(ctx context.Context, dataset string) (Trace, error) {
	return ask[Trace](ctx, c, "trace", named{dataset}, nil)
}

// LearnTrace keeps a trace of opens for a dataset.
func (c *Client) LearnTrace(ctx context.Context, r LearnRequest) (Trace, error) {
	return ask[Trace](ctx, c, "learn-trace", r, unseen)
}

// ForgetTrace drops the trace of a dataset.
func (c *Client) ForgetTrace(ctx context.Context, dataset string) error {
	_, err := ask[struct{}](ctx, c, "forget-trace", named{dataset}, unseen)
	return err
}
