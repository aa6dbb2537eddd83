package datanode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/cache/stall"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
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
	s.release(nil)
	s.client.config.Log.Info("block read over TCP: its files could not be read", "block", s.block.ID, "at", s.at, "cause", cause)
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
	}
	defer stall.Enter(s.ctx, overTCP(s.client.isLocal(r))).Leave(0)
	l, err := s.client.dial(s.ctx, s.block, r, g, s.at, s.end)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// overTCP is the cause to count bytes under that come through a datanode, on this
// host or another.
func overTCP(local bool) stall.Cause {
	if local {
		return stall.ByTCP
	}
	return stall.Remote
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

// fail gives up a replica. One that is corrupt says nothing of its datanode: the other
// blocks there are read as before.
func (s *Stream) fail(err error) {
	if s.ctx.Err() != nil {
		err = s.ctx.Err()
	}
	if isCorrupt(err) {
		s.release(nil)
	} else {
		s.release(err)
	}
	s.tried[s.replica.ID] = true
	err = fmt.Errorf("datanode %s (%s): %w", s.replica.Host, s.replica.Addr, err)
	s.errs = append(s.errs, err)
	if s.ctx.Err() != nil {
		return
	}
	s.client.failures.Add(1)
	if isCorrupt(err) {
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

// isCorrupt reports whether it is the replica that is bad, and not its datanode.
func isCorrupt(err error) bool {
	return errors.Is(err, errSums) || strings.Contains(err.Error(), "invalid checksum")
}

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

// A link is one replica being read through the library.
type link struct {
	client *hdfs.Client
	file   *hdfs.FileReader
	wire   *wire
	end    int64       // of the range, in the block
	stop   func() bool // of the watch over the context
}

// fill reads p in full.
//
// The library returns the bytes of a packet with a wrong checksum, or one that ended
// early, as if all were well; only its next Read has the error. So the last byte of p
// is always read alone: the library checks a read that short before it returns, and
// an error of an earlier packet comes first.
func (l *link) fill(p []byte) error {
	for len(p) > 0 {
		n, err := l.read(p[:max(1, len(p)-1)])
		p, l.wire.at = p[n:], l.wire.at+int64(n)
		l.wire.idle = l.wire.idle && n == 0
		if err == io.EOF {
			if l.wire.at == l.end && len(p) == 0 {
				return nil
			}
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return l.wire.explain(err)
		}
	}
	return nil
}

// read calls the library, which panics on some answers that no sound datanode
// gives. A fault in p itself is the caller's.
func (l *link) read(p []byte) (n int, err error) {
	defer func() {
		v := recover()
		if _, fault := v.(interface{ Addr() uintptr }); fault {
			panic(v)
		}
		if v != nil {
			err = fmt.Errorf("its answer %w: %v", meta.ErrCorrupt, v)
		}
	}()
	return l.file.Read(p)
}

func (l *link) way() stall.Cause { return overTCP(l.wire.local) }

func (l *link) close() {
	if l.file != nil {
		l.file.Close()
	}
	l.client.Close()
	l.wire.close()
	l.stop()
}
