package shortcircuit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Open returns the block's files, which the caller gives back with Release. Its
// error says why they cannot be had; the datanode may send the block all the
// same.
func (c *Client) Open(ctx context.Context, b Block) (*File, error) {
	if f := c.kept(b.key()); f != nil {
		if c.good(f) && f.size >= b.Size {
			return f, nil
		}
		c.forget(f)
		f.Release()
	}
	if n, _ := c.disks.closing(); n >= 2*c.config.Keep {
		err := fmt.Errorf("a disk does not close the files of %d blocks: %w", n, syscall.ETIMEDOUT)
		c.refuse(b.key(), origin{}, err)
		return nil, err
	}
	asked := time.Now()
	s, err := c.socket(b)
	if err != nil {
		return nil, err
	}
	f, from, err := s.request(ctx, c.config.Timeout, b, c.disks)
	c.learn(ctx, s, b.key(), from, err)
	if err != nil {
		return nil, err
	}
	f.holder, f.key, f.origin, f.asked = c, b.key(), from, asked
	return c.keep(f), nil
}

// Close forgets all files, and waits until they are closed if their disks answer. Those in
// use, of a reader or the sweep, are closed after their last use.
func (c *Client) Close() {
	c.forgetAll()
	c.disks.awaitClosed()
}

// OfBlock reports whether an error of Open is of that block alone: its datanode passes
// others, as far as is known.
func OfBlock(err error) bool {
	var useless *uselessError
	return !errors.As(err, &useless) && !errors.Is(err, errToken) && !errors.Is(err, errClosed)
}
