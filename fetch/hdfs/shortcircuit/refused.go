package shortcircuit

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"rankfs/meta"
)

func (c *Client) suspend(from origin, cause error) suspension {
	rest := c.config.BackOff
	if meta.OutOfFiles(cause) {
		rest /= 30
	}
	now := time.Now()
	return suspension{cause, now, now.Add(rest), from}
}

// socket returns that of a block's datanode, unless it or the block is suspended.
func (c *Client) socket(b Block) (*socket, error) {
	path := c.config.Path
	if strings.Contains(path, portMark) {
		_, port, err := net.SplitHostPort(b.Addr)
		if err != nil {
			return nil, err
		}
		path = strings.ReplaceAll(path, portMark, port)
	}
	s, suspensions := c.suspensions(path, b.key())
	if s == nil {
		return nil, errClosed
	}
	for _, l := range suspensions {
		if l.lasts() {
			return nil, l.cause
		}
	}
	return s, nil
}

// portMark stands for a datanode's port in the path of its socket.
const portMark = "_PORT"

// suspensions returns a socket, nil after Close, with what was last wrong with it and with a
// block.
func (c *Client) suspensions(path string, k key) (*socket, [2]suspension) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, [2]suspension{}
	}
	s := c.mu.sockets[path]
	if s == nil {
		s = &socket{path: path}
		c.mu.sockets[path] = s
	}
	return s, [2]suspension{s.suspension, c.mu.refused[k]}
}

// learn remembers whether a socket is of use, and a block is refused, and says it when
// that changes.
func (c *Client) learn(ctx context.Context, s *socket, k key, from origin, err error) {
	if ctx.Err() != nil || errors.Is(err, errToken) {
		return // says nothing of either
	}
	var useless *uselessError
	if err != nil && !errors.As(err, &useless) {
		defer c.refuse(k, from, err) // but the socket is of use
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := s.cause
	s.suspension = suspension{}
	if useless != nil {
		s.suspension = c.suspend(from, useless)
	}
	switch {
	case s.cause == nil && before != nil:
		c.config.Log.Info("blocks of this host are read by their files again", "socket", s.path)
	case s.cause != nil && before == nil:
		c.config.Log.Warn("blocks of this host are read over TCP; status says so until they no longer are", "socket", s.path, "cause", s.cause)
	}
}

// refuse has a block come over TCP for a while. It says so of the first such block.
func (c *Client) refuse(k key, from origin, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune()
	if len(c.mu.refused) == 0 {
		c.config.Log.Warn("a block of this host is read over TCP; status counts such blocks from now on", "block", k.id, "socket", from.path, "cause", cause)
	}
	if len(c.mu.refused) < maxRefused {
		c.mu.refused[k] = c.suspend(from, cause)
	}
}

// maxRefused is somewhat more than the blocks of one disk that a node reads within two
// minutes. Of others nothing is remembered: they are asked for each time.
const maxRefused = 4096

// accept ends what refuse began, now that bytes of the file have matched their checksums:
// that a datanode passes files says nothing of what is in them.
func (c *Client) accept(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.mu.refused[f.key]; ok && !c.outdated(f) {
		c.forgive(f.key)
	}
}

// outdated reports whether the block was refused after the file was asked for: a part of
// it that is right says nothing of the part that was not. mu is held.
func (c *Client) outdated(f *File) bool { return f.asked.Before(c.mu.refused[f.key].since) }

// prune forgets refused blocks that no reader has asked for since their suspension ended, for as
// long as files are kept. mu is held.
func (c *Client) prune() {
	for k, l := range c.mu.refused {
		if time.Since(l.until) > c.config.Age {
			c.forgive(k)
		}
	}
}

// forgive ends the refusal of a block, and logs when none is left. mu is held.
func (c *Client) forgive(k key) {
	delete(c.mu.refused, k)
	if len(c.mu.refused) == 0 {
		c.config.Log.Info("no block of this host is refused any more", "last", k.id)
	}
}
