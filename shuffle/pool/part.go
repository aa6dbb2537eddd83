package pool

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Part is a partition of maps that are committed, whose bytes follow from these.
type Part struct {
	Stage      uint64
	Generation uint64
	Number     uint64
	Whole      bool // all parts, of one map
	Maps       []state.Commit
	pieces     []piece
	pool       *Pool
	files      *files
}

// A partName tells a part from all others there ever were.
type partName [7]uint64

// Name is the part's. The maps of a sealed stage are those that they are, so that the
// first, the last and how many there are say which.
func (p *Part) Name() partName {
	whole, first, last, n := uint64(0), uint64(0), uint64(0), len(p.Maps)
	if p.Whole {
		whole = 1
	}
	if n > 0 {
		first, last = p.Maps[0].Map, p.Maps[n-1].Map
	}
	return partName{p.Stage, p.Generation, p.Number, whole, first, last, uint64(n)}
}

// Size is how many bytes it has.
func (p *Part) Size() (sum int64) {
	for _, one := range p.pieces {
		sum += one.n
	}
	return sum
}

// part is a part of a sealed stage, with what its pieces are.
func (g Parts) part(ctx context.Context, is state.PoolStage, name meta.Part) (*Part, error) {
	if name.Number >= is.Spec.Parts {
		return nil, fmt.Errorf("part %d of stage %s %w: it has parts 0 to %d", name.Number, g.path(), meta.ErrNotExist, is.Spec.Parts-1)
	}
	f, err := g.job.files()
	if err != nil {
		return nil, err
	}
	p := &Part{Stage: g.number, Generation: is.Generation, Number: name.Number, pool: g.job.pool, files: f}
	p.Maps = g.job.pool.config.State.Commits(g.number)
	if name.Ranged {
		p.Maps = between(p.Maps, name.From, name.To)
	}
	if g.Generation() != is.Generation {
		return nil, g.wasReset()
	}
	if err := g.bind(); err != nil {
		return nil, err
	}
	return p, p.measure(ctx)
}

// between are the commits of a range of maps.
func between(all []state.Commit, from, to uint64) []state.Commit {
	at := func(number uint64) int {
		i, _ := slices.BinarySearchFunc(all, number, func(c state.Commit, n uint64) int { return cmp.Compare(c.Map, n) })
		return i
	}
	first := at(from)
	return all[first:max(first, at(to+1))]
}

// bind has the commits that this node knows of outlive a power failure. They may have been
// answered before that; but nobody is given bytes of a map in whose place, after such a
// failure, another run of it could have others.
func (g stage) bind() error { return g.job.pool.config.Cluster.Lasts() }

// from divides maps that are wanted among the nodes that have a copy and have not failed:
// this one, else one that is up. A map that nobody is left to have is an error.
func (p *Part) from(wanted []int, failed map[string]error) (map[string][]int, error) {
	self := p.pool.config.Cluster.Self()
	up := up(p.pool.config.Nodes())
	from := make(map[string][]int)
	for _, i := range wanted {
		c, node := p.Maps[i], ""
		for _, id := range c.Nodes {
			if failed[id] == nil && (node == "" || id == self || up[id] && !up[node] && node != self) {
				node = id
			}
		}
		switch {
		case len(c.Nodes) == 0:
			return nil, lost(c)
		case node == "":
			return nil, fmt.Errorf("map %d of the shuffle pool: no node that has a copy gives it: %w", c.Map, errors.Join(slices.Collect(maps.Values(failed))...))
		}
		from[node] = append(from[node], i)
	}
	return from, nil
}

// each has what is wanted of the maps of a node done by do. Where that fails, another node
// that has a copy is asked; and the same one again, if it has learned that a copy is bad.
func (p *Part) each(ctx context.Context, do func(node string, maps []int) error) error {
	wanted := make([]int, len(p.Maps))
	for i := range wanted {
		wanted[i] = i
	}
	failed := make(map[string]error)
	for len(wanted) > 0 {
		from, err := p.from(wanted, failed)
		if err != nil {
			return err
		}
		wanted = nil
		for node, err := range together(from, do) {
			switch {
			case err == nil:
				continue
			case ctx.Err() != nil:
				return err
			case !errors.Is(err, meta.ErrCorrupt) || !p.gaveUp(ctx, node, from[node]):
				failed[node] = fmt.Errorf("node %s: %w", node, err)
			}
			wanted = append(wanted, from[node]...)
		}
		slices.Sort(wanted)
	}
	return nil
}

// asked is how many nodes a part asks at a time.
const asked = 16

// together calls do for each node.
func together(from map[string][]int, do func(node string, maps []int) error) map[string]error {
	var work sync.WaitGroup
	var mu sync.Mutex
	errs := make(map[string]error, len(from))
	turns := make(chan struct{}, asked)
	for node, maps := range from {
		turns <- struct{}{}
		work.Go(func() {
			err := do(node, maps)
			mu.Lock()
			errs[node] = err
			mu.Unlock()
			<-turns
		})
	}
	work.Wait()
	return errs
}

// gaveUp looks again who has copies of maps, and reports whether a node has given one up.
func (p *Part) gaveUp(ctx context.Context, node string, maps []int) (gave bool) {
	if p.pool.Know(ctx) != nil {
		return false
	}
	p.Maps = slices.Clone(p.Maps) // they were those of all who have asked
	for _, i := range maps {
		c, ok := p.pool.config.State.Commit(p.Stage, p.Maps[i].Map)
		if ok && c.Sum == p.Maps[i].Sum {
			gave = gave || !slices.Contains(c.Nodes, node)
			p.Maps[i] = c
		}
	}
	return gave
}

// own reports whether a node is this one.
func (p *Part) own(node string) bool { return node == p.pool.config.Cluster.Self() }

func (p *Part) request(maps []int) PieceRequest {
	r := PieceRequest{Stage: p.Stage, Generation: p.Generation, Part: p.Number, Whole: p.Whole}
	for _, i := range maps {
		r.Maps = append(r.Maps, p.Maps[i])
	}
	return r
}

// measure finds how long the pieces are, and what they hash to.
func (p *Part) measure(ctx context.Context) error {
	for _, c := range p.Maps {
		if len(c.Nodes) == 0 {
			return lost(c)
		}
	}
	if known, ok := p.pool.measured.get(p.Name()); ok {
		p.pieces = known
		return nil
	}
	p.pieces = make([]piece, len(p.Maps))
	err := p.each(ctx, func(node string, maps []int) (err error) {
		var all []piece
		if p.own(node) {
			all, err = p.pool.copies.measure(ctx, p.files, p.request(maps))
		} else {
			all, err = p.pool.peers.measureAt(ctx, node, p.request(maps))
		}
		for k, one := range all {
			p.pieces[maps[k]] = one
		}
		return err
	})
	if err == nil {
		p.pool.measured.put(p.Name(), p.pieces)
	}
	return err
}

func lost(c state.Commit) error {
	return meta.Worded(meta.ErrLost, "map %d has no copy left; commit the same bytes again, or begin the stage anew with: rankfs shuffle reset", c.Map)
}

// Fill writes the part into dst, whose length is Size: the maps' pieces in the order of
// the maps, whichever nodes they come from.
func (p *Part) Fill(ctx context.Context, dst []byte) error {
	begin := make([]int64, len(p.pieces)+1)
	for i, one := range p.pieces {
		begin[i+1] = begin[i] + one.n
	}
	err := p.each(ctx, func(node string, maps []int) error {
		for _, run := range runs(maps) { // pieces that stand one after the other come at once
			r, first, last := p.request(run), run[0], run[len(run)-1]+1
			at := dst[begin[first]:begin[last]]
			if p.own(node) {
				if err := p.pool.copies.read(ctx, p.files, r, p.pieces[first:last], at); err != nil {
					return err
				}
			} else if err := p.pool.peers.fetch(ctx, node, r, p.pieces[first:last], at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.pool.measured.forget(p.Name())
	}
	return err
}

// runs cuts rising numbers where one is left out.
func runs(numbers []int) (all [][]int) {
	for i, n := range numbers {
		if i == 0 || numbers[i-1]+1 != n {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], n)
	}
	return all
}

// Size is the size of a part, zero until the stage is sealed.
func (g Parts) Size(ctx context.Context, name meta.Part) (int64, error) {
	is, err := g.sealed(ctx, false)
	if isAgain(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	p, err := g.part(ctx, is, name)
	if err != nil {
		return 0, err
	}
	return p.Size(), nil
}

// Open waits until the stage is sealed, and opens a part of it.
func (g Parts) Open(ctx context.Context, name meta.Part, wait bool) (File, error) {
	sealed, done := g.job.pool.waits.begin(ctx, g.number, name)
	defer done()
	is, err := g.sealed(ctx, wait)
	if err != nil {
		return nil, err
	}
	sealed()
	p, err := g.part(ctx, is, name)
	if err != nil {
		return nil, err
	}
	return g.job.pool.maker.Open(ctx, p)
}

// Offsets are where the maps begin in a part, and where it ends.
func (g Parts) Offsets(ctx context.Context, name meta.Part, wait bool) ([]byte, error) {
	is, err := g.sealed(ctx, wait)
	if err != nil {
		return nil, err
	}
	p, err := g.part(ctx, is, name)
	if err != nil {
		return nil, err
	}
	b, at := make([]byte, 8, 8*(len(p.pieces)+1)), int64(0)
	for _, one := range p.pieces {
		at += one.n
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b, nil
}

// sealTime bounds how long an open of a part waits for the maps. A stage may take hours;
// a program that asks for less uses O_NONBLOCK, and one that is interrupted stops.
const sealTime = 24 * time.Hour

// Parts are those of the stage, which it has once it is sealed.
type Parts struct{ stage }

// Parts are those of the stage.
func (g *Stage) Parts() Parts { return Parts{g.stage} }

// sealed waits until all maps are committed, and returns the stage.
func (g Parts) sealed(ctx context.Context, wait bool) (state.PoolStage, error) {
	ctx, cancel := context.WithTimeout(ctx, sealTime)
	defer cancel()
	asked := false
	for {
		changed := g.job.pool.config.State.Changed()
		is, err := g.is()
		switch {
		case err != nil, is.Sealed:
			return is, err
		case !asked:
			if err := g.job.pool.Know(ctx); err != nil {
				return is, err
			}
			asked = true
			continue
		case !wait:
			return is, unix.EAGAIN
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return is, fmt.Errorf("stage %s, of which %d maps are committed: %w", g.path(), is.Maps, cause(ctx))
		}
	}
}

func isAgain(err error) bool { return errors.Is(err, unix.EAGAIN) }
