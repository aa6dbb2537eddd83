package pool

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/record"
)

// A Sealed is one generation of a stage that is sealed. Its parts never change; it is stale
// once the stage was reset or is gone.
type Sealed struct {
	Parts
	is state.PoolStage
}

// Sealed is a stage of a job, which has to be sealed.
func (p *Pool) Sealed(ctx context.Context, job, name string) (*Sealed, error) {
	if Fixed(name) {
		return nil, fmt.Errorf("stage %s of job %s %w: every job has something else of that name", name, job, meta.ErrInvalid)
	}
	j, err := p.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	g, err := j.Stage(ctx, name)
	if err != nil {
		return nil, err
	}
	is, err := g.Parts().sealed(ctx, meta.Part{}, false)
	if isAgain(err) {
		r, err := g.Report()
		if err != nil {
			return nil, err
		}
		_, why := r.State()
		return nil, meta.Worded(meta.ErrBusy, "stage %s is not sealed yet: %s", g.path(), why)
	}
	if err != nil {
		return nil, err
	}
	return &Sealed{g.Parts(), is}, nil
}

// Stage is the number of the stage, and how often that was reset before.
func (s *Sealed) Stage() (number, generation uint64) { return s.is.Number, s.is.Generation }

// Len is the number of its parts.
func (s *Sealed) Len() uint64 { return s.is.Spec.Parts }

// Bytes are the bytes of its maps.
func (s *Sealed) Bytes() int64 { return s.is.Bytes }

// HasRecords reports whether the spec says what a record is: else it is what a map has of a
// part.
func (s *Sealed) HasRecords() bool { return s.is.Spec.Records.Kind != meta.NoRecords }

// Fingerprint tells its bytes from all others: which generation of which stage it is, and a
// sum of the sums that the cluster agreed on.
func (s *Sealed) Fingerprint() string {
	h := xxhash.New()
	var b [16]byte
	for _, c := range s.config.State.Commits(s.number).All() {
		binary.LittleEndian.PutUint64(b[:], c.Map)
		binary.LittleEndian.PutUint64(b[8:], c.Sum)
		h.Write(b[:])
	}
	return fmt.Sprintf("stage=%d,nonce=%x,generation=%d,maps=%d,sum=%016x", s.number, s.is.Nonce, s.is.Generation, s.is.Maps, h.Sum64())
}

// Check returns an error that wraps meta.ErrStale if the stage was reset, or is gone.
func (s *Sealed) Check() error {
	switch now, err := s.stage.is(); {
	case err != nil:
		return fmt.Errorf("%w: %w", meta.ErrStale, err)
	case now.Generation != s.is.Generation:
		return fmt.Errorf("stage %s: %w: it was reset", s.path(), meta.ErrStale)
	}
	return nil
}

// Part is one of its parts.
func (s *Sealed) Part(ctx context.Context, number uint64) (*Part, error) {
	return s.part(ctx, s.is, meta.Part{Number: number})
}

// Records calls add with where records of the part are: n of them, each of so many bytes,
// one after the other. An error of add is returned.
func (p *Part) Records(ctx context.Context, add func(off, length int64, n uint64) error) (err error) {
	switch size := int64(p.merged.Records.Size); {
	case p.merged.Records.Kind == meta.NoRecords:
		at := p.column.Begins(p.column.Every())
		for i, one := range p.column.Each {
			err = cmp.Or(err, add(at[i], one.Size, 1))
		}
	case p.merged.Records.Kind == meta.Fixed:
		for i, one := range p.column.Each {
			if one.Size%size != 0 {
				return meta.Worded(meta.ErrInvalid, "map %d has %d bytes of part %d, and a record has %d: its .idx file cuts one; write that otherwise, and begin the stage anew with: rankfs shuffle reset JOB/STAGE",
					p.column.At(i).Map, one.Size, p.column.Number, size)
			}
		}
		if p.size > 0 {
			err = add(0, size, uint64(p.size/size))
		}
	default:
		begun, last := false, uint64(0)
		late := p.merged.Runs(ctx, func(runs []record.Run) error {
			if begun {
				return fmt.Errorf("part %d %w: a copy was damaged of a map that was read, and is given up; do that again", p.column.Number, meta.ErrCorrupt)
			}
			return p.merged.Records.Begins(ctx, runs, func(at uint64) {
				if begun && err == nil {
					err = add(int64(last), int64(at-last), 1)
				}
				begun, last = true, at
			})
		})
		err = cmp.Or(err, late)
	}
	return err
}

// Read reads some bytes of the part, in the order of their offsets. If it is merged, all of
// it up to the last of them is merged for that, unless they are the whole part, so they are
// best asked for together.
func (p *Part) Read(ctx context.Context, some record.Windows) (err error) {
	switch {
	case len(some) == 1 && some[0].Off == 0 && int64(len(some[0].To)) == p.size:
		return p.Fill(ctx, some[0].To)
	case p.merged.Merges():
		err = p.merged.Runs(ctx, func(runs []record.Run) error { return p.merged.Records.MergeSome(ctx, runs, some) })
	default:
		err = p.readPieces(ctx, some)
	}
	if err != nil {
		p.column.all.Measured.Forget(p.Name())
	}
	return err
}

// readPieces reads bytes of pieces that stand one after the other. Of a piece that is not
// in memory of this node all comes, since it is checked as a whole.
func (p *Part) readPieces(ctx context.Context, some record.Windows) error {
	at, begins := p.column.Begins(p.column.Every()), []int64(nil)
	one := p.column.with(merging.Pieces{Number: p.column.Number})
	var maps []state.Commit
	for i, piece := range p.column.Each {
		if some.Touch(at[i], at[i+1]) {
			maps, begins, one.Each = append(maps, p.column.At(i)), append(begins, at[i]), append(one.Each, piece)
		}
	}
	one.Maps = state.MapsOf(maps...)
	whole := p.column.all.merges.Part(one, p.column.Party, record.Spec{})
	return whole.Runs(ctx, func(runs []record.Run) error {
		left := some
		for i, run := range runs {
			for at := begins[i]; ; {
				b, some, err := run.Next()
				if err != nil {
					return err
				}
				if !some {
					break
				}
				left = left.Put(at, b)
				at += int64(len(b))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("part %d %w: it ends before byte %d", p.column.Number, meta.ErrCorrupt, left[0].Off+int64(len(left[0].To)))
		}
		return nil
	})
}

// Hosts are those with nearly as much of the part as the first has; maxHosts at most.
const (
	maxHosts   = 8
	nearlyMost = 0.9
)

// Hosts are the hosts on which copies of much of the part are, the one with most of it first.
func (p *Part) Hosts() (hosts []string) {
	host, has := make(map[string]string), make(map[string]int64)
	for _, n := range p.column.all.copies.config.Nodes() {
		host[n.ID] = n.Host
	}
	for i, n := range p.perMap() {
		for _, id := range p.column.At(i).Nodes {
			if name, ok := host[id]; ok {
				has[name] += n
			}
		}
	}
	for name, n := range has {
		if n > 0 {
			hosts = append(hosts, name)
		}
	}
	slices.SortFunc(hosts, func(a, b string) int { return cmp.Or(cmp.Compare(has[b], has[a]), cmp.Compare(a, b)) })
	for i, name := range hosts {
		if i == maxHosts || float64(has[name]) < nearlyMost*float64(has[hosts[0]]) {
			return hosts[:i]
		}
	}
	return hosts
}

// perMap is the amount of the part in each map: bytes, or if it is a range of keys slices, which
// are about equal.
func (p *Part) perMap() []int64 {
	all := make([]int64, p.column.Maps.Len())
	for i, one := range p.column.Each {
		all[i] = one.Size
	}
	p.merged.Wants.Count(all)
	return all
}
