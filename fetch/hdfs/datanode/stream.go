package datanode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// A Stream is a range of a block, read forward. It goes on with another
// replica where one fails. It is for one goroutine.
type Stream struct {
	client *Client
	ctx    context.Context
	block  namenode.Block
	at     int64 // in the block; all before it was given out
	end    int64

	tried   map[string]bool    // replicas that failed since the last byte was read
	errs    []error            // their errors
	corrupt []namenode.Replica // those that were corrupt
	replica namenode.Replica
	source  source // nil if there is none
	overTCP bool   // reading by the block's files failed
	unread  string // the replica that is not to be read so, though its files are unchanged
}

// A source is one replica being read forward.
type source interface {
	fill(p []byte) error // in full, with bytes that match their checksums
	way() stall.Cause
	close()
}

// Open begins to read n bytes of a block. It does no I/O yet.
func (c *Client) Open(ctx context.Context, b namenode.Block, off, n int64) *Stream {
	return &Stream{client: c, ctx: ctx, block: b, at: off, end: off + n, tried: make(map[string]bool)}
}

// Read fills p, or as much of p as the range has bytes left, with bytes that match
// their checksums. At the end it returns io.EOF. Any other error means that no
// replica could be read, and has the cause of each.
func (s *Stream) Read(p []byte) (int, error) {
	if s.at == s.end {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.end-s.at)]
	for {
		err := s.connect()
		if err != nil {
			return 0, err
		}
		if err = s.fill(p); err == nil {
			s.at += int64(len(p))
			clear(s.tried)
			s.errs = nil
			s.report()
			return len(p), nil
		}
		if _, byFile := s.source.(*file); byFile && s.ctx.Err() == nil {
			s.leaveFile(err)
			continue
		}
		s.fail(err)
	}
}

// fill reads p in full from the replica at work.
func (s *Stream) fill(p []byte) (err error) {
	n, m := 0, stall.Enter(s.ctx, s.source.way())
	defer func() { m.Leave(int64(n)) }()
	if err = s.source.fill(p); err == nil {
		n = len(p)
	}
	return err
}

// leaveFile goes on over TCP with the replica whose files could not be read:
// they may have been changed under the reader. If the bytes on the disk are
// wrong, they are so over TCP.
func (s *Stream) leaveFile(cause error) {
	s.overTCP = true
	if !errors.Is(cause, shortcircuit.ErrChanged) {
		s.unread = s.replica.ID
	}
	s.release(errMute)
}

// connect finds a replica, if there is none at work.
func (s *Stream) connect() error {
	for s.source == nil {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		guard, err := s.client.guard(s.ctx)
		if err != nil {
			return err
		}
		r, ok := s.client.pick(s.block.Replicas, s.tried)
		if !ok {
			return s.exhausted()
		}
		s.replica = r
		if s.source, err = s.reach(r, guard); err != nil {
			s.fail(err)
		}
	}
	return nil
}

// reach opens a replica: by its files if it is on this host and its datanode
// passes them, else over TCP.
func (s *Stream) reach(r namenode.Replica, g Guard) (source, error) {
	if s.client.config.Files != nil && !s.overTCP && s.client.isLocal(r) {
		m := stall.Enter(s.ctx, stall.ByFile)
		f, err := s.client.openFile(s.ctx, s.block, r, s.at)
		m.Leave(0)
		if err == nil {
			return f, nil
		}
		if shortcircuit.OfBlock(err) {
			s.unread = r.ID
		}
	}
	defer stall.Enter(s.ctx, overTCP(s.client.isLocal(r))).Leave(0)
	l, err := s.client.dial(s.ctx, s.block, r, g, s.at, s.end)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// ErrNoReplica is the error of a block without a readable replica.
var ErrNoReplica = errors.New("no replica can be read")

func (s *Stream) exhausted() error {
	if len(s.errs) == 0 {
		return fmt.Errorf("block %d: %w: no live datanode has one", s.block.ID, ErrNoReplica)
	}
	return fmt.Errorf("block %d: %w: %w", s.block.ID, ErrNoReplica, causes(s.errs))
}

// Causes are one error, on one line.
type causes []error

func (c causes) Unwrap() []error { return c }

func (c causes) Error() string {
	words := make([]string, len(c))
	for i, err := range c {
		words[i] = err.Error()
	}
	return strings.Join(words, "; ")
}

// fail gives up a replica. One that is corrupt, or that its disk cannot read, says nothing
// of its datanode: the other blocks there are read as before. Nor does the lack of a
// descriptor here.
func (s *Stream) fail(err error) {
	if s.ctx.Err() != nil {
		err = s.ctx.Err()
	}
	switch {
	case ofReplica(err):
		s.release(nil) // it has answered
	case s.replica.ID == s.unread, meta.OutOfFiles(err):
		s.release(errMute)
	default:
		s.release(err)
	}
	s.tried[s.replica.ID] = true
	err = fmt.Errorf("datanode %s (%s): %w", s.replica.Host, s.replica.Addr, err)
	s.errs = append(s.errs, err)
	if s.ctx.Err() != nil {
		return
	}
	s.client.failures.Add(1)
	if ofReplica(err) {
		s.client.corrupt.Add(1)
		s.corrupt = append(s.corrupt, s.replica)
	}
	s.client.config.Log.Warn("replica given up", "block", s.block.ID, "at", s.at, "cause", err)
}

// report tells of replicas that are corrupt, when another one's bytes were seen
// to be right: if none are, the fault may be this host's.
func (s *Stream) report() {
	for _, r := range s.corrupt {
		if s.client.config.Corrupt != nil {
			s.client.config.Corrupt(s.ctx, s.block, r)
		}
	}
	s.corrupt = nil
}

// ofReplica reports whether it is the replica that is bad, and not its datanode.
func ofReplica(err error) bool { return errors.Is(err, errSums) || errors.Is(err, errBytes) }

func (s *Stream) release(err error) {
	if s.source != nil {
		s.source.close()
		s.source = nil
	}
	s.client.drop(s.replica, err)
}

// Close ends the stream.
func (s *Stream) Close() error {
	if s.source != nil {
		s.release(nil)
	}
	return nil
}
