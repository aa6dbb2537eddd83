package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/shuffle/plan"
)

// A Source is the way to the bytes of one version: its source, attached when the
// first byte is asked for, or another node if only that node has it. Only the
// attached source ever changes. A Source may be used concurrently.
type Source struct {
	Remote bool // the bytes are on hosts that the index names
	URI    string
	copied bool // one node of the cluster has them on its disk as a whole
	whole  bool // some of a chunk costs about as much as all of it
	opened *OpenSource

	env    *fetch.Env
	origin string // the node that indexed it
	owners *plan.Owners
	seed   uint64      // of the owners of its chunks
	asked  *staleCheck // if only another node has the source
}

func newSource(x *index.Index, id peers.ID, c Config) Source {
	u, _ := uri.Parse(cmp.Or(c.Root, c.Source)) // one that cannot be read has no traits, and attaching says why
	s := Source{
		Remote: u.Remote(), copied: u.Copied(), whole: u.Whole(),
		URI: c.Source, env: c.Env, opened: &OpenSource{index: x}, origin: c.Origin, owners: c.Owners, seed: plan.Seed(id),
	}
	if s.asked = newStaleCheck(nil); c.Ask != nil {
		s.asked.ask = func(ctx context.Context, node string) error {
			err := c.Ask(ctx, node, id)
			if host, ok := c.Owners.Host(node); ok && err != nil {
				return fmt.Errorf("on host %s: %w", host, err)
			}
			return err
		}
	}
	return s
}

// notYet is the error of Reach if another attempt may come to something else.
type notYet struct{ error }

func (e notYet) Unwrap() error { return e.error }

// Reach comes first in an open, and may have to be tried again: it returns nil if this
// node knows no reason to wait. A source that does not answer is none: batches that are cached
// are served, and a fetch of others fails.
func (s *Source) Reach(ctx context.Context, account *stall.Open) error {
	if s.Attached() == nil && s.Elsewhere() == "" {
		defer account.End(account.For(stall.Source))
	}
	_, err := s.Data(ctx)
	if err == nil {
		return nil
	}
	switch err = s.orAsked(ctx, err, account); {
	case errors.Is(err, meta.ErrUnavailable):
		return nil
	case errors.Is(err, meta.ErrBusy):
		return notYet{err}
	}
	return err
}

// Data returns the source and its index, or an error wrapping meta.ErrStale if the
// source is no longer what was indexed, or meta.ErrUnavailable if it lies on a node that is
// down. It asks no other node.
func (s *Source) Data(ctx context.Context) (*fetch.Dataset, error) {
	known := s.opened.stale.Load()
	d, err := s.opened.found()
	if d == nil && err == nil {
		if owner := s.Elsewhere(); owner != "" && s.copied {
			return nil, fmt.Errorf("%w: it is node %s; see: rankfs node ls", errCopyOwner, owner)
		}
		d, err = s.opened.attach(ctx, s.URI, s.env, s.holder)
		if node := s.away(); node != "" && errors.Is(err, meta.ErrStale) && !errors.Is(err, ErrRemoved) {
			if err := s.asked.said(node); err != nil {
				return nil, err
			}
			return nil, meta.Worded(meta.ErrUnavailable, "the source is on node %s alone, which is down; see: rankfs node ls", node)
		}
	}
	if err == nil {
		err = d.Check(ctx)
	}
	s.opened.note(known, err)
	if err == nil {
		s.asked.forget()
	}
	return d, err
}

// Check is Data for a caller that wants no bytes: the node that alone has the source may be
// asked. Of that there is no error but that the source has changed, or that ctx is done.
func (s *Source) Check(ctx context.Context) error {
	_, err := s.Data(ctx)
	if err == nil {
		return nil
	}
	return s.orAsked(ctx, err, nil)
}

// orAsked is the error that Data found or, if another node alone has the source, that this node told.
func (s *Source) orAsked(ctx context.Context, found error, account *stall.Open) error {
	owner := s.Elsewhere()
	if owner == "" || errors.Is(found, ErrRemoved) {
		return found
	}
	return s.asked.stale(ctx, owner, account)
}

// Stale is the error that Check or a read ended with last, if it was that the source has
// changed. It asks no other node.
func (s *Source) Stale() error {
	if owner := s.holder(); owner != "" {
		return s.asked.said(owner)
	}
	if err := s.opened.stale.Load(); err != nil {
		return *err
	}
	return nil
}

// Attached is Data without a check, and nil if no byte was asked for yet.
func (s *Source) Attached() *fetch.Dataset { return s.opened.attached() }

// NeedsCopy reports whether this node may need a copy of the source: it has it, or no other
// node does.
func (s *Source) NeedsCopy() bool { return !s.copied || s.Elsewhere() == "" }

// Elsewhere is the node that alone has the source: a source that is not remote lies on
// the disks of one node. It is empty if that node is this one, is down, or is gone.
func (s *Source) Elsewhere() string {
	if owner := s.copyOwner(); !s.Remote && owner != s.owners.Self && s.owners.Up(owner) {
		return owner
	}
	return ""
}

// away is the node that alone has the source and is down. Another one that is gone had it,
// and no node has it now.
func (s *Source) away() string {
	if !s.Remote && !s.copied && s.origin != s.owners.Self && s.owners.Down(s.origin) {
		return s.origin
	}
	return ""
}

// holder is the node that alone has the source, up or down; empty if it is this one, or gone.
func (s *Source) holder() string { return cmp.Or(s.Elsewhere(), s.away()) }

// Host is where a source lies that does not say where its bytes are: on the host of this
// node, unless another node has it and this one has not attached it.
func (s *Source) Host(own string) string {
	if owner := s.Elsewhere(); owner != "" && s.Attached() == nil {
		if host, ok := s.owners.Host(owner); ok {
			return host
		}
	}
	return own
}

// Where is the host on which alone the source can be indexed again; it is empty if that is
// this one, or any.
func (s *Source) Where() string {
	if s.copied {
		return ""
	}
	host, _ := s.owners.Host(s.holder())
	return host
}

// copyOwner is the node on whose disks the source lies: the one that indexed it. If
// that node is gone and the source is a copy, another node makes a new copy.
func (s *Source) copyOwner() string {
	if s.copied && s.origin != s.owners.Self && !s.owners.Up(s.origin) {
		return s.owners.Of(s.seed, 0, nil)
	}
	return s.origin
}

// errCopyOwner says that the node with the copy could not send bytes of it. Soon it
// can, or another node takes its place.
var errCopyOwner = fmt.Errorf("source %w: another node has the copy of it", meta.ErrBusy)
