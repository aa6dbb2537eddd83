package pool

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/access"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/pieces"
)

// A sealing is a file that is written no more, as it is now. It is one rename's, and its
// goroutine's but for bytes, which several copies read at a time:
//
//   - leased, by seal, until close: nothing can open the file to write it, and its content and
//     table are final;
//   - named, by name, if this node is to have a copy: the bytes have the name of a map here;
//   - committed, when the cluster has agreed: the name stays. So it does while it is not known
//     whether the cluster has;
//   - or taken back, by unname, when it has not. A name that was there before stays, as it may be
//     of a map that was committed.
type sealing struct {
	content
	files  *files
	stage  uint64
	source *os.File // what was written, which has the lease
	table  pieces.Table
	ahead  *tail // what other nodes have of it already; nil: nothing
	named  bool  // it was given the name of a map now: one that has it since an earlier time may be committed
}

// seal waits until a file cannot be written, and sums it. A lease tells: the kernel
// refuses it as long as there is a descriptor that writes, or a mapping.
func (f *files) seal(ctx context.Context, g state.PoolStage, name string) (*sealing, error) {
	open := f.root.Open // programs name directories and links beside a blob
	if !g.Blobs() {
		open = func(name string) (*os.File, error) { return f.maps.Memory().OpenFile(name, os.O_RDONLY, 0) }
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	s := &sealing{content: content{file: file}, files: f, stage: g.Number, source: file}
	if err := access.Lease(ctx, s.source); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	info, err := file.Stat()
	if err == nil {
		s.size = info.Size()
		err = s.sum(ctx, g, name)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// sum divides the file, if the pool is to do that, and makes its table: of an attempt by its
// offsets, of a blob as one piece.
func (s *sealing) sum(ctx context.Context, g state.PoolStage, name string) error {
	o, err := pieces.Whole(s.size), error(nil)
	if !g.Blobs() {
		o, err = s.files.offsets(g.Spec, name, s.size)
	}
	if err == nil && divides(g.Spec, o) {
		o, err = s.files.divideInTurn(ctx, g, &s.content, o)
	}
	if err != nil {
		return err
	}
	sum := pieces.NewSumming(o)
	if s.sums != nil {
		sum.Know(s.sums)
	} else {
		err = sum.Add(s.file, s.size-s.after)
	}
	if err == nil && s.rest != nil {
		err = sum.Add(s.rest, s.after)
	}
	if err == nil {
		s.table, err = sum.End()
	}
	if errors.Is(err, unix.EFAULT) {
		return meta.Worded(meta.ErrNoSpace, "holes in it take as much memory of the pool as other bytes, and there is no room: mount with a larger --pool-ram, remove jobs, or write smaller maps: %w", err)
	}
	return err
}

// close gives the lease back. A program that opens the file to write it from here on is
// refused by its second name.
func (s *sealing) close() error {
	err := access.Unlease(s.source)
	if s.file != s.source {
		err = errors.Join(err, s.file.Close())
	}
	if s.rest != nil {
		err = errors.Join(err, s.rest.Close())
	}
	return errors.Join(err, s.source.Close())
}

// name gives the file the name of a map, beside a table, behind which stands what comes after
// the file; or, if it has to last, has the bytes under that name on the disk. Where it has the
// name already it may have been agreed on, and keeps it whatever comes.
func (s *sealing) name(ctx context.Context, c state.Commit, lasting bool) error {
	to := mapfiles.Path(s.stage, c)
	has, err := s.files.maps.Has(ctx, s.stage, c)
	if ctx.Err() != nil || lasting && err != nil && err != disk.ErrGone { // which says why it takes nothing
		return cmp.Or(ctx.Err(), err)
	}
	s.named = !has && err == nil
	switch {
	case lasting:
		err := s.files.maps.Take(ctx, true, to, s.table, io.NewSectionReader(s.joined(), 0, s.size))
		if errors.Is(err, disk.ErrSilent) || ctx.Err() != nil { // what is left there is swept
			s.named = false
		}
		return err
	case has:
		return nil
	}
	return s.files.maps.Name(to, s.file, s.table, io.NewSectionReader(s.joined(), s.size-s.after, s.after), s.after)
}

// unname takes that back.
func (s *sealing) unname(c state.Commit) error {
	if s.named {
		s.files.maps.Drop(mapfiles.Path(s.stage, c))
	}
	return nil
}
