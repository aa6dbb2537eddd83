package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// patience is how long a node that has enough to do may let a request wait; then
// the source is the better way.
const patience = 5 * time.Second

// receive has a node send ranges straight to their places in the batch. If it
// does not, or takes longer than it mostly does, the source has them too.
func (f *fill) receive(ctx context.Context, from string, ranges []byteRange) error {
	runs, places := make([]peers.Run, len(ranges)), make([][]byte, len(ranges))
	for i, p := range ranges {
		runs[i] = peers.Run{First: p.record, N: p.n}
		places[i] = f.dst[p.at : p.at+p.len]
	}
	v := f.batches.Version
	want := peers.Want{Dataset: v.ID, Runs: runs, Wait: patience, Alone: v.Source.whole}
	received := total(ranges)
	m := stall.Enter(ctx, stall.Peer)
	defer func() { m.Leave(received) }()
	if f.data == nil { // only that node has it
		err := f.batches.Peers.Gather(ctx, from, want, places)
		if v.Source.copied && passes(err) {
			return fmt.Errorf("%w: %w", errCopyOwner, err)
		}
		return err
	}
	var s spare
	defer s.free()
	won, err := f.batches.Peers.Hedge(ctx, from, want, places, func(ctx context.Context) error {
		return s.read(stall.Fork(ctx), f, ranges)
	})
	if won {
		received = 0
	}
	if err != nil || !won {
		return err
	}
	for i, p := range s.ranges {
		copy(places[i], s.room[p.at:p.at+p.len])
	}
	return nil
}

// receiveKept asks nodes that read a chunk before to send it, and reports whether one did.
// If none did, room may hold part of the chunk; the caller then reads the chunk from
// the source.
func (f *fill) receiveKept(ctx context.Context, number int, room []byte) bool {
	if f.batches.EarlierReaders == nil {
		return false
	}
	c := f.index.Chunk(number)
	for _, node := range f.batches.EarlierReaders(number) {
		want := peers.Want{Dataset: f.batches.Version.ID, Runs: []peers.Run{{First: c.First, N: c.Records}}, Wait: patience, Kept: true}
		m := stall.Enter(ctx, stall.Peer)
		if f.batches.Peers.Gather(ctx, node, want, [][]byte{room}) == nil {
			m.Leave(int64(len(room)))
			return true
		}
		m.Leave(0)
	}
	return false
}

// passes reports whether a node that refused a request may serve it soon: it is busy
// copying, is gone but still taken for up, or has no index yet.
func passes(err error) bool {
	return errors.Is(err, meta.ErrBusy) || errors.Is(err, meta.ErrUnavailable) || errors.Is(err, meta.ErrNotExist)
}

// A spare is memory, outside of Go's heap, for ranges that are read from the source
// while another node may still send them into the batch.
type spare struct {
	room   []byte
	ranges []byteRange // with their places in room
}

func (s *spare) read(ctx context.Context, f *fill, ranges []byteRange) error {
	var size int64
	s.ranges = append(s.ranges, ranges...)
	for i := range s.ranges {
		s.ranges[i].at = size
		size += s.ranges[i].len
	}
	if size == 0 {
		return nil
	}
	room, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return meta.Worded(meta.ErrBusy, "room for %d bytes: %w", size, err)
	}
	s.room = room
	return readRanges(ctx, f.data, f.index, s.ranges, room)
}

func (s *spare) free() {
	if s.room != nil {
		_ = unix.Munmap(s.room)
	}
}
