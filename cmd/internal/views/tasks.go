package views

import (
	"context"
	"sync"
)

// tasks are what goes on behind opens and closes of views, which do not wait for it.
type tasks struct {
	sync.WaitGroup
	ctx context.Context // set by Start of the views
}
