package supply

import (
	"context"
	"fmt"
	"time"
)

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
