package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// A column is a piece of each map: what maps have of a part, or in place of that a slice of each,
// the samples of these, or all of a map. Pieces come from the nodes that have copies. The lock
// guards what is known again of some maps.
type column struct {
	terms
	merging.Pieces
	Whole bool   // all parts, of one map
	next  uint64 // columns that come after this one, and are parts as it is
	pool  *Pool
	files *files // of this node; nil if it keeps nothing

	again struct {
		sync.Mutex
		of map[int]state.Commit // those of which a node has given up a copy since
	}
}

// A demand is a request to a node for maps. It is in a hurry if other nodes have them too.
type demand struct {
	node  string
	maps  []int
	hurry bool
}

// A nodeState says how soon a node is asked: those of the first are asked first.
type nodeState int

const (
	isUp nodeState = iota
	isDown
	isSlow // it said nothing lately
)

// from divides maps that are wanted among the nodes that have a copy and have not failed:
// this one, else one that is up, else one that was slow. A map of which no node is left is
// an error.
func (p *column) from(wanted []int, failed *merging.Failures) ([]demand, error) {
	why := failed.Now()
	self := p.pool.config.Cluster.Self()
	has := func(id string) bool { return why[id] != nil || id == self && p.files == nil }
	up := up(p.pool.config.Nodes())
	stateOf := func(id string) nodeState {
		switch {
		case p.pool.slow.are(id):
			return isSlow
		case !up[id]:
			return isDown
		}
		return isUp
	}
	here, from := demand{node: self}, make(map[string]*demand)
	for k, c := range p.now(wanted) {
		i := wanted[k]
		switch {
		case len(c.Nodes) == 0:
			return nil, lost(c)
		case !has(self) && slices.Contains(c.Nodes, self):
			here.maps = append(here.maps, i)
			continue
		}
		left := slices.DeleteFunc(slices.Clone(c.Nodes), has)
		if len(left) == 0 {
			return nil, fmt.Errorf("map %d of the shuffle pool: no node that has a copy gives it: %w", c.Map, p.refusals(why))
		}
		slices.SortStableFunc(left, func(a, b string) int { return cmp.Compare(stateOf(a), stateOf(b)) })
		s := from[left[0]]
		if s == nil {
			s = &demand{node: left[0], hurry: true}
			from[left[0]] = s
		}
		s.maps = append(s.maps, i)
		s.hurry = s.hurry && len(left) > 1 && stateOf(left[1]) == isUp
	}
	all := make([]demand, 0, 1+len(from))
	if here.maps != nil {
		all = append(all, here)
	}
	for _, s := range from {
		all = append(all, *s)
	}
	return all, nil
}

// refusals are why no node gives something.
func (p *column) refusals(why map[string]error) error {
	all := slices.Collect(maps.Values(why))
	if p.files == nil {
		all = append(all, errKeepsNothing)
	}
	return errors.Join(all...)
}

// each has what is wanted of the maps of a node done by do. Where that fails, another node
// that has a copy is asked; and the same one again, if it has learned that a copy is bad.
func (p *column) each(ctx context.Context, wanted []int, do func(demand) error) error {
	failed := new(merging.Failures)
	for len(wanted) > 0 {
		from, err := p.from(wanted, failed)
		if err != nil {
			return err
		}
		wanted = nil
		for i, err := range together(from, do) {
			switch {
			case err == nil:
				continue
			case ctx.Err() != nil:
				return err
			case !errors.Is(err, meta.ErrCorrupt) || !p.gaveUp(ctx, from[i].node, from[i].maps):
				p.failed(failed, from[i], err)
			}
			wanted = append(wanted, from[i].maps...)
		}
		slices.Sort(wanted)
	}
	return nil
}

// failed notes what a demand has failed with. A node that was in a hurry may be slow: it is asked
// again, and has time then, if no other is left.
func (p *column) failed(all *merging.Failures, s demand, err error) {
	if s.hurry && (errors.Is(err, meta.ErrUnavailable) || errors.Is(err, meta.ErrBusy)) {
		p.pool.slow.add(s.node)
		return
	}
	all.Add(s.node, err)
}

// asked is how many nodes a part asks at a time.
const asked = 16

// together calls do for each node.
func together(from []demand, do func(demand) error) []error {
	var work sync.WaitGroup
	errs := make([]error, len(from))
	turns := make(chan struct{}, asked)
	for i, s := range from {
		turns <- struct{}{}
		work.Go(func() {
			errs[i] = do(s)
			<-turns
		})
	}
	work.Wait()
	return errs
}

// gaveUp looks again which nodes have copies of maps, and reports whether a node has given one up.
func (p *column) gaveUp(ctx context.Context, node string, maps []int) (gave bool) {
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

// now are some maps as this node knew them last.
func (p *column) now(some []int) []state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	all := make([]state.Commit, len(some))
	for k, i := range some {
		all[k] = p.last(i)
	}
	return all
}

// at is a map as this node knew it last.
func (p *column) at(i int) state.Commit {
	p.again.Lock()
	defer p.again.Unlock()
	return p.last(i)
}

// last is the commit of a map as it is known now. The lock is held.
func (p *column) last(i int) state.Commit {
	if c, ok := p.again.of[i]; ok {
		return c
	}
	return p.Maps.At(i)
}

// own reports whether a node is this one.
func (p *column) own(node string) bool { return node == p.pool.config.Cluster.Self() }

// of is what is wanted of each map.
func (p *column) of() mapfiles.Part {
	return mapfiles.Part{Stage: p.Stage, Number: p.Number, Whole: p.Whole}
}

// request asks for some maps of a demand.
func (p *column) request(maps []int, hurry bool) PieceRequest {
	return PieceRequest{terms: p.terms, Part: p.Number, Whole: p.Whole, Maps: p.now(maps), hurry: hurry}
}

// measurePieces finds how long the pieces are, and what they hash to.
func (p *column) measurePieces(ctx context.Context) error {
	p.Each = make([]pieces.Piece, p.Maps.Len())
	return p.each(ctx, p.Every(), func(s demand) (err error) {
		var all []pieces.Piece
		if p.own(s.node) {
			all, err = p.measureHere(ctx, s.maps)
		} else {
			all, err = p.pool.peers.measureAt(ctx, s.node, p.request(s.maps, s.hurry))
		}
		for k, one := range all {
			p.Each[s.maps[k]] = one
		}
		return err
	})
}

// partsAhead is how many parts are measured at a time, if no other node has a map of them. In a
// table their rows stand beside each other: of eight they are 144 bytes.
const partsAhead = 8

// measureHere finds what the pieces are of maps that are here, and of the parts that come after
// this one, which are read next as a rule.
func (p *column) measureHere(ctx context.Context, maps []int) ([]pieces.Piece, error) {
	n := 1
	if p.next > 0 && len(maps) == p.Maps.Len() {
		n = max(1, min(partsAhead, 1+int(min(p.next, partsAhead)), mostPieces/2/partsAhead/len(maps)))
	}
	all, err := p.pool.copies.measureSome(ctx, p.files, p.request(maps, false), n)
	if err != nil {
		return nil, err
	}
	name := p.name()
	for _, next := range all[1:] {
		name[2]++
		p.pool.measured.put(name, measurement{pieces: next, size: pieces.SizeOf(next)})
	}
	return all[0], nil
}

func lost(c state.Commit) error {
	return meta.Worded(meta.ErrLost, "map %d has no copy left; commit the same bytes again, or begin the stage anew with: rankfs shuffle reset JOB/STAGE", c.Map)
}

// gather writes the pieces of some maps into dst, one after the other.
func (p *column) gather(ctx context.Context, wanted []int, dst []byte) error {
	begin := p.Begins(wanted)
	return p.each(ctx, wanted, func(s demand) error {
		for _, run := range runs(s.maps) { // pieces that stand one after the other come at once
			r, first, last := p.request(run, s.hurry), run[0], run[len(run)-1]+1
			at := dst[begin[first]:begin[last]]
			if p.own(s.node) {
				if err := p.pool.copies.read(ctx, p.files, r, p.Each[first:last], at); err != nil {
					return err
				}
			} else if err := p.pool.peers.fetch(ctx, s.node, r, p.Each[first:last], at); err != nil {
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
