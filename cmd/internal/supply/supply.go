// Package supply feeds programs that were written for named pipes and mapped
// files: one FIFO and one mapped file per rank, over which a client asks for
// a batch and is told when it lies in the mapped file.
//
// Both directions share the FIFO, so the two sides take turns:
//
//	client                              server
//	open WRONLY (waits for a reader)    request: open RDONLY, wait for bytes
//	write 8 bytes, close                read 8 bytes, close
//	open RDONLY (waits for a writer)    copy the batch into the mapped file
//	                                    answer: open WRONLY once a reader is there
//	read 56 bytes, close                write 56 bytes, keep the end open
//	open WRONLY (waits for a reader)    once they are read: close, then request
//
// Three rules keep one side from reading its own bytes, which a FIFO would
// gladly hand back:
//
//   - The server never holds both ends. With its reading end open it would be
//     its own reader; with its writing end open, a client that has just
//     written a request would not wait in its open for reading, and would
//     read the request back.
//   - It closes the reading end before it answers, so that a successful open
//     for writing proves that the client is there to read.
//   - It does not open the reading end again before its answer has left the
//     FIFO, either read or, when the client is gone, thrown away. Until then a
//     client that asks again waits in its open.
//
// A client may come between the server's last look for a request and its close of
// that end: it has asked, and waits to read, while the answer to a dead client is on
// its way. The server then finds bytes as it opens to write, and breaks the first
// rule: it keeps that end open while it reads them. Such a client may read its
// request back, and finds the end of the FIFO after it. A client whose request went
// with the close, as it had not opened to read yet, is told of the sequence that the
// dead one asked for: the server cannot see that request.
//
// All opens are O_NONBLOCK, waits go through the runtime's poller, and each
// has a deadline, except that for a request: that is the state in which a
// pair is ready for anyone, and it ends with the context. Whatever goes wrong
// leads back to it.
package supply

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// A Config says which pairs serve which directory.
type Config struct {
	Maps    string        // file that lists one mapped file a line; line i is rank i's
	Pipes   string        // file that lists one named pipe a line
	Ranks   string        // those to serve, as 0,4-7; the lists may be theirs alone; empty: all
	Batches string        // directory of rank-N/batch-KKKKKK, as MOUNT/datasets/NAME
	Once    bool          // end when each rank has had its last batch
	Timeout time.Duration // of each wait for a client or a batch; 0 is a minute
	Log     *slog.Logger  // nil discards
}

// withDefaults: a minute outlasts a batch that comes from a slow source, and
// is short enough for a job that was killed and started again by its queue.
func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Run serves the ranks of the directory until each client has closed its
// pair, or has had all of its batches if it is to serve them once, or until ctx
// is done; all return nil. It makes the pipes and mapped files that are missing,
// and removes those, and only those, when it returns.
//
// The process must not start others meanwhile: between fork and exec a child
// holds a copy of every open end, and the first rule of the package is broken.
func Run(ctx context.Context, c Config) error {
	c = c.withDefaults()
	places, err := c.places(ctx)
	if err != nil {
		return err
	}
	pairs, err := c.open(ctx, places)
	defer func() {
		for _, p := range pairs {
			p.close()
		}
	}()
	if err != nil {
		return err
	}
	c.Log.Info("supplying", "directory", c.Batches, "ranks", len(pairs))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range pairs {
		go p.serve(ctx)
	}
	if c.Once {
		finish(pairs)
		cancel()
	}
	for _, p := range pairs {
		<-p.done
	}
	return nil
}

// open makes the pairs: each mapped file has its size before its pipe is there.
func (c Config) open(ctx context.Context, places []place) (pairs []*pair, err error) {
	seen := map[fileID]string{}
	for i, largest := range c.measure(ctx, places) {
		p, err := openPair(places[i], largest, c)
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, p)
		if other, twice := seen[p.pipe.id]; twice {
			return pairs, fmt.Errorf("%s and %s are one pipe: give each rank its own", other, p.place.pipe)
		}
		seen[p.pipe.id] = p.place.pipe
	}
	return pairs, nil
}

// finish returns when each pair is closed or has supplied its last batch, and
// those that are open have had a moment to ask whether there is more.
func finish(pairs []*pair) {
	for _, p := range pairs {
		select {
		case <-p.done:
		case <-p.last:
		}
	}
	over := time.After(amends)
	for _, p := range pairs {
		select {
		case <-p.done:
		case <-over:
			return
		}
	}
}
