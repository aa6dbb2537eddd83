package fs

import "context"

// A request is the context of one kernel request: it ends when the kernel
// withdraws it.
type request struct {
	context.Context
	cancel <-chan struct{}
}

func requestContext(cancel <-chan struct{}) context.Context {
	return request{Context: context.Background(), cancel: cancel}
}

func (r request) Done() <-chan struct{} { return r.cancel }

func (r request) Err() error {
	select {
	case <-r.cancel:
		return context.Canceled
	default:
		return nil
	}
}
