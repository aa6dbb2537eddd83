package pool

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/packing"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/turns"
)

// A server answers what other nodes ask.
type server struct {
	*copies
	repairs *turns.Repairs
	packing *packing.Presses
}

func (s server) calls() (wire.Calls, wire.Pushes) {
	return wire.Calls{callMeasure: s.sendMeasures, callPieces: s.sendPieces, callWeigh: s.sendWeights, callPortion: s.sendPortions}, wire.Pushes{pushCopy: s.takeCopy, pushTail: s.takeTail}
}

// asked is the request of another node. Which attempts it means both know by what the
// cluster agreed on; what this node does not know yet is on its way.
func (s server) asked(ctx context.Context, q wire.Request) (r gathering.Request, f *files, err error) {
	if r, f, err = s.known(ctx, q); err == nil {
		return r, f, nil
	}
	if err := s.Know(ctx); err != nil {
		return r, nil, err
	}
	return s.known(ctx, q)
}

// known is the request as far as this node knows.
func (s server) known(ctx context.Context, q wire.Request) (r gathering.Request, f *files, err error) {
	r.Stage = binary.LittleEndian.Uint64(q.ID[0:])
	r.Generation = binary.LittleEndian.Uint64(q.ID[8:])
	r.Part = binary.LittleEndian.Uint64(q.ID[16:])
	r.Whole, r.Packed = q.ID[24]&1 == 1, meta.Compression(q.ID[24]>>1)
	if !r.Packed.Known() {
		return r, nil, fmt.Errorf("request for pieces packed by %d %w", r.Packed, meta.ErrInvalid)
	}
	j, g, err := s.numbered(ctx, r.Stage)
	if err != nil {
		return r, nil, err
	}
	if g.Generation != r.Generation {
		return r, nil, fmt.Errorf("stage %s of job %s was reset: %w", g.Name, j.Name, meta.ErrStale)
	}
	if !r.Whole && r.Part >= g.Spec.Pieces() {
		return r, nil, fmt.Errorf("part %d of stage %s of job %s %w", r.Part, g.Name, j.Name, meta.ErrInvalid)
	}
	known := false // what the cluster knew when it was asked
	for _, run := range q.Runs {
		if run.N > meta.MaxMaps || run.First+run.N > g.Numbers() {
			return r, nil, fmt.Errorf("map %d %w", run.First+run.N, meta.ErrInvalid)
		}
		for number := run.First; number < run.First+run.N; number++ {
			c, ok := s.config.State.Commit(r.Stage, number)
			if !ok && !known {
				if err := s.Know(ctx); err != nil {
					return r, nil, err
				}
				known = true
				c, ok = s.config.State.Commit(r.Stage, number)
			}
			if !ok {
				return r, nil, fmt.Errorf("map %d of stage %s of job %s %w", number, g.Name, j.Name, meta.ErrNotExist)
			}
			r.Maps = append(r.Maps, c)
		}
	}
	f, err = s.files(j)
	return r, f, err
}

func (s server) sendMeasures(ctx context.Context, q wire.Request, a wire.Answer) error {
	r, f, err := s.asked(ctx, q)
	if err != nil {
		return err
	}
	all, err := s.measure(ctx, f, r)
	if err != nil {
		return err
	}
	b := make([]byte, 0, pieceBytes*len(all))
	for _, one := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(one.Size))
		b = binary.LittleEndian.AppendUint64(b, one.Sum)
	}
	return a.Emit(b)
}

func (s server) sendPieces(ctx context.Context, q wire.Request, a wire.Answer) error {
	r, f, err := s.asked(ctx, q)
	if err != nil {
		return err
	}
	return s.answer(r, q, a, func(emit func([]byte) error) error { return s.send(ctx, f, r, emit) })
}

func (s server) sendPortions(ctx context.Context, q wire.Request, a wire.Answer) error {
	r, f, err := s.asked(ctx, q)
	switch {
	case err != nil:
		return err
	case len(r.Maps) != 1 || r.Whole && q.Bytes != 0 || int64(q.Bytes) < 0:
		return fmt.Errorf("request for bytes of a piece %w", meta.ErrInvalid)
	case q.Bytes == 0:
		return s.look(ctx, f, r)
	}
	return s.answer(r, q, a, func(emit func([]byte) error) error {
		return s.sendPortion(ctx, f, r, offOf(q.ID), int64(q.Bytes), emit)
	})
}

// answer emits what was asked for, packed if that was.
func (s server) answer(r gathering.Request, q wire.Request, a wire.Answer, feed func(emit func([]byte) error) error) error {
	if r.Packed != meta.Uncompressed {
		a.AtMost(packing.MaxPacked(q.Bytes))
	}
	return s.packing.Pack(r.Packed, q.Bytes, a.Emit, feed)
}

func (s server) sendWeights(ctx context.Context, q wire.Request, a wire.Answer) error {
	r, f, err := s.asked(ctx, q)
	if err != nil {
		return err
	}
	_, g, err := s.numbered(ctx, r.Stage)
	if err != nil {
		return err
	}
	if uint64(len(r.Maps))*g.Spec.Pieces() > maxRows {
		return fmt.Errorf("sum of %d maps of %d pieces %w: they are too many", len(r.Maps), g.Spec.Pieces(), meta.ErrInvalid)
	}
	parts := make([]int64, g.Spec.Pieces())
	if err := s.weigh(ctx, f, r, parts); err != nil {
		return err
	}
	b := make([]byte, 0, 8*len(parts))
	for _, n := range parts {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return a.Emit(b)
}

// takeCopy takes a copy of an attempt, whose table has to have the sum that was said, and
// its bytes those of the table.
func (s server) takeCopy(ctx context.Context, q wire.Request, from *wire.Stream) ([]byte, error) {
	var r copyRequest
	if err := json.Unmarshal(q.Body, &r); err != nil {
		return nil, fmt.Errorf("copy of a map %w: %w", meta.ErrInvalid, err)
	}
	in, err := s.packing.Intake(q, r.Pushed, from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	j, g, err := s.numbered(ctx, r.Stage)
	if err == nil && r.check(g, in.Bytes) != nil { // of a spec, or a reset, that is on its way
		if err = s.Know(ctx); err == nil {
			j, g, err = s.numbered(ctx, r.Stage)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.check(g, in.Bytes); err != nil {
		return nil, err
	}
	f, err := s.files(j)
	if err != nil {
		return nil, err
	}
	defer f.Enter()()
	defer f.Expect(mapfiles.Path(r.Stage, r.Commit))()
	if r.Agreed {
		end, err := s.repairs.Take(ctx)
		if err != nil {
			return nil, fmt.Errorf("copy of map %d: %w", r.Commit.Map, err)
		}
		err = f.keep(ctx, g.Spec.Durable, r, in)
		end()
		if err != nil {
			return nil, err
		}
		_, err = s.agree(ctx, &state.KeepCopy{StageName: nameOf(j, g), Node: s.config.Cluster.Self(), Map: r.Commit.Map, Sum: r.Commit.Sum, Has: true})
		return nil, err
	}
	return nil, f.keep(ctx, g.Spec.Durable, r, in)
}

// keep keeps a copy that another node sends, once there is room for all of it.
func (f *files) keep(ctx context.Context, lasting bool, r copyRequest, in io.Reader) error {
	before := r.before()
	if err := f.maps.Room(lasting, r.bytes()); err != nil {
		f.maps.Tails.GiveUp(r.Stage, before)
		return fmt.Errorf("copy of map %d: %w", r.Commit.Map, err)
	}
	t := make(pieces.Table, r.Table)
	if _, err := io.ReadFull(in, t); err != nil {
		return err
	}
	if !t.Is(r.Commit.Sum, r.Commit.Size) {
		return fmt.Errorf("table of a copy of map %d %w", r.Commit.Map, meta.ErrCorrupt)
	}
	var err error
	if name := mapfiles.Path(r.Stage, r.Commit); r.Has > 0 {
		err = f.maps.Tails.Complete(lasting, r.Stage, name, t, before, r.Has, in)
	} else {
		err = f.maps.Take(ctx, lasting, name, t, in)
	}
	if err != nil {
		return fmt.Errorf("copy of map %d: %w", r.Commit.Map, err)
	}
	return nil
}

// before names the bytes of the attempt that a tail sent earlier.
func (r copyRequest) before() mapfiles.TailName {
	return mapfiles.TailName{Map: r.Commit.Map, Attempt: r.Commit.Attempt, Writer: r.Commit.Writer, Nonce: r.Nonce}
}

// takeTail takes what comes next of an attempt.
func (s server) takeTail(ctx context.Context, q wire.Request, from *wire.Stream) ([]byte, error) {
	var r tailRequest
	if err := json.Unmarshal(q.Body, &r); err != nil {
		return nil, fmt.Errorf("tail of a map %w: %w", meta.ErrInvalid, err)
	}
	in, err := s.packing.Intake(q, r.Pushed, from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	j, g, err := s.numbered(ctx, r.Stage)
	switch {
	case err != nil:
		return nil, err
	case r.Generation != g.Generation:
		return nil, fmt.Errorf("stage %s was reset: %w", g.Name, meta.ErrStale)
	case r.At < 0 || in.Bytes == 0 || in.Bytes > maxTail || r.Map >= g.Numbers() || len(r.Writer) != 16:
		return nil, fmt.Errorf("tail of map %d %w", r.Map, meta.ErrInvalid)
	}
	f, err := s.files(j)
	if err != nil {
		return nil, err
	}
	defer f.Enter()()
	t, err := f.maps.Tails.At(r.Stage, r.TailName, r.At)
	if err != nil {
		return nil, err
	}
	if err := t.Take(int64(in.Bytes), in); err != nil {
		return nil, fmt.Errorf("tail of map %d: %w", r.Map, err)
	}
	return nil, nil
}

func (r copyRequest) check(g state.PoolStage, bytes uint64) error {
	switch {
	case r.Generation != g.Generation:
		return fmt.Errorf("stage %s was reset: %w", g.Name, meta.ErrStale)
	case r.Has < 0 || r.Has > r.Commit.Size || r.Table != pieces.RowBytes*int64(g.Spec.Pieces()) || uint64(r.bytes()) != bytes,
		r.Commit.Map >= g.Numbers(), len(r.Commit.Writer) != 16:
		return fmt.Errorf("copy of map %d %w", r.Commit.Map, meta.ErrInvalid)
	}
	return nil
}
