package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
)

// failures are the nodes that did not give what a part has asked them for, and why. The lock
// guards them.
type failures struct {
	mu sync.Mutex
	of map[string]error
}

// failures of a part that has asked nobody yet.
func (p *Part) failures() *failures {
	f := &failures{of: make(map[string]error)}
	if p.files == nil {
		f.of[p.pool.config.Cluster.Self()] = errKeepsNothing
	}
	return f
}

func (f *failures) add(node string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[node] = fmt.Errorf("node %s: %w", node, err)
}

// from divides maps that are wanted among the nodes that have a copy and have not failed:
// this one, else one that is up. A map that nobody is left to have is an error.
func (p *Part) from(wanted []int, failed *failures) (map[string][]int, error) {
	failed.mu.Lock()
	defer failed.mu.Unlock()
	self := p.pool.config.Cluster.Self()
	up := up(p.pool.config.Nodes())
	from := make(map[string][]int)
	for _, i := range wanted {
		c, node := p.at(i), ""
		for _, id := range c.Nodes {
			if failed.of[id] == nil && (node == "" || id == self || up[id] && !up[node] && node != self) {
				node = id
			}
		}
		switch {
		case len(c.Nodes) == 0:
			return nil, lost(c)
		case node == "":
			return nil, fmt.Errorf("map %d of the shuffle pool: no node that has a copy gives it: %w", c.Map, errors.Join(slices.Collect(maps.Values(failed.of))...))
		}
		from[node] = append(from[node], i)
	}
	return from, nil
}

// every is the numbers of all maps.
func (p *Part) every() []int {
	all := make([]int, p.Maps.Len())
	for i := range all {
		all[i] = i
	}
	return all
}

// each has what is wanted of the maps of a node done by do. Where that fails, another node
// that has a copy is asked; and the same one again, if it has learned that a copy is bad.
func (p *Part) each(ctx context.Context, wanted []int, do func(node string, maps []int) error) error {
	failed := p.failures()
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
				failed.add(node, err)
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
	p.again.Lock()
	defer p.again.Unlock()
	if p.again.of == nil {
		p.again.of = make(map[int]state.Commit)
	}
	for _, i := range maps {
		was := p.Maps.At(i)
		c, ok := p.pool.config.State.Commit(p.Stage, was.Map)
		if ok && c.Sum == was.Sum {
			gave = gave || !slices.Contains(c.Nodes, node)
			p.again.of[i] = c
		}
	}
	return gave
}

// at is a map as this node knew it last.
func (p *Part) at(i int) state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	if c, ok := p.again.of[i]; ok {
		return c
	}
	return p.Maps.At(i)
}

// own reports whether a node is this one.
func (p *Part) own(node string) bool { return node == p.pool.config.Cluster.Self() }

func (p *Part) request(maps []int) PieceRequest {
	r := PieceRequest{Stage: p.Stage, Generation: p.Generation, Part: p.Number, Whole: p.Whole}
	for _, i := range maps {
		r.Maps = append(r.Maps, p.at(i))
	}
	return r
}

// measurePieces finds how long the pieces are, and what they hash to.
func (p *Part) measurePieces(ctx context.Context) error {
	p.pieces = make([]piece, p.Maps.Len())
	return p.each(ctx, p.every(), func(node string, maps []int) (err error) {
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
}

func lost(c state.Commit) error {
	return meta.Worded(meta.ErrLost, "map %d has no copy left; commit the same bytes again, or begin the stage anew with: rankfs shuffle reset", c.Map)
}

// lengthOfPieces is how many bytes they have together.
func (p *Part) lengthOfPieces() (n int64) {
	for _, one := range p.pieces {
		n += one.n
	}
	return n
}

// begins are where the pieces begin when those of some maps stand one after the other, and
// where they end.
func (p *Part) begins(some []int) []int64 {
	begin := make([]int64, len(p.pieces)+1)
	for _, i := range some {
		begin[i+1] = p.pieces[i].n
	}
	for i := range p.pieces {
		begin[i+1] += begin[i]
	}
	return begin
}

// gather writes the pieces of some maps into dst, one after the other.
func (p *Part) gather(ctx context.Context, wanted []int, dst []byte) error {
	begin := p.begins(wanted)
	return p.each(ctx, wanted, func(node string, maps []int) error {
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
