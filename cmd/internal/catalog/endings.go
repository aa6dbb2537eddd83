package catalog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rankfs/fetch/batch"
)

// Endings are of sources that no name stands for any more: each is closed when the reads
// under way have ended. One that hangs is waited for by no other.
//
// The lock guards what is known of them. While it is held no source is touched.
type endings struct {
	log   *slog.Logger
	freed chan struct{}  // has a token if a source was closed since, whose copies may go
	tasks sync.WaitGroup // each closes a source

	mu struct {
		sync.Mutex
		open []*batch.OpenSource      // sources that are open still, as far as is known
		last map[string]chan struct{} // by name: closed with the source of what it stood for
	}
}

func newEndings(log *slog.Logger) *endings {
	e := &endings{log: log, freed: make(chan struct{}, 1)}
	e.mu.last = make(map[string]chan struct{})
	return e
}

// begin ends the source of what a name stood for, and waits for nothing.
func (e *endings) begin(name string, old *batch.OpenSource) {
	ended := e.note(name, old)
	e.tasks.Go(func() {
		if err := old.Detach(); err != nil {
			e.log.Warn("source not closed", "dataset", name, "cause", err)
		}
		close(ended)
		e.forget(name, ended)
		select {
		case e.freed <- struct{}{}:
		default:
		}
	})
}

func (e *endings) note(name string, old *batch.OpenSource) (ended chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.open = append(slices.DeleteFunc(e.mu.open, (*batch.OpenSource).IsClosed), old)
	ended = make(chan struct{})
	e.mu.last[name] = ended
	return ended
}

// forget forgets the end of a source, unless the name has stood for another since.
func (e *endings) forget(name string, ended chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.last[name] == ended {
		delete(e.mu.last, name)
	}
}

// endTime is how long a command that removes or refreshes a dataset waits for reads under
// way, so that what its source has on disks is free then. Reads of a source that answers take less.
const endTime = time.Second

// await waits until the source is closed of what a name stood for, but no longer than
// endTime.
func (e *endings) await(ctx context.Context, name string) {
	e.mu.Lock()
	ended := e.mu.last[name]
	e.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(endTime):
	case <-ctx.Done():
	}
}

// close closes what is open still, and waits for all ends. None is begun any more.
func (e *endings) close() (errs []error) {
	e.mu.Lock()
	all := slices.Clone(e.mu.open)
	e.mu.Unlock()
	for _, s := range all {
		errs = append(errs, s.Close())
	}
	e.tasks.Wait()
	return errs
}
