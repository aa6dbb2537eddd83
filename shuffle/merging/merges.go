package merging

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
	"rankfs/shuffle/record"
	"rankfs/shuffle/turns"
)

// Merges are those of a node, for all jobs: they share memory and processors, and what was found of
// stages whose parts are ranges of keys.
type Merges struct {
	room       room
	processors *turns.Shares
	divisions  divisions
}

// New has merges on a node whose pool may have so much in memory. They take turns on processors,
// by bytes.
func New(ram int64, processors *turns.Shares) *Merges {
	return &Merges{room: newRoom(ram), processors: processors}
}

// A merger brings pieces into memory beside the heap, where they are read as records.
type merger struct {
	Column
	Records record.Spec // what they are made of
	on      *Merges
	by      turns.Party // that it works for
}

// hold takes that of the room, until give is called, for so many bytes that a part takes.
func (p *merger) hold(ctx context.Context, n int64) (give func(), err error) {
	return p.waits(p.on.room.Take(ctx, p.by, n, n))
}

// work waits for a processor to merge pieces with, until give is called.
func (p *merger) work(ctx context.Context, bytes int64) (give func(), err error) {
	return p.waits(p.on.processors.Take(ctx, p.by, 1, bytes))
}

func (p *merger) waits(give func(), err error) (func(), error) {
	if err != nil {
		err = fmt.Errorf("part %d, whose merge waits for others: %w", p.Is().Number, err)
	}
	return give, err
}

// besideHeap is memory that the garbage collector does not know.
func besideHeap(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

// memory is memory beside the heap.
func (p *merger) memory(n int64) ([]byte, error) {
	b, err := besideHeap(int(n))
	if err != nil {
		return nil, fmt.Errorf("memory to merge part %d in, %d bytes: %w", p.Is().Number, n, err)
	}
	return b, nil
}

// guard calls f, which reads what is mapped.
func (p *merger) guard(f func() error) error {
	err := fault.Guard(f)
	if at := new(fault.Error); errors.As(err, &at) {
		err = fmt.Errorf("merge part %d: %w (%w)", p.Is().Number, unix.EIO, err)
	}
	return err
}

// free gives memory beside the heap back.
func free(b []byte) {
	if b != nil {
		unix.Munmap(b)
	}
}
