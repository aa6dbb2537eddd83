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
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

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
	self := p.all.config.Cluster.Self()
	has := func(id string) bool { return why[id] != nil || id == self && p.files == nil }
	up := up(p.all.config.Nodes())
	stateOf := func(id string) nodeState {
		switch {
		case p.all.slow.are(id):
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
		p.all.slow.add(s.node)
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

// measurePieces finds how long the pieces are, and what they hash to.
func (p *column) measurePieces(ctx context.Context) error {
	p.Each = make([]pieces.Piece, p.Maps.Len())
	return p.each(ctx, p.Every(), func(s demand) (err error) {
		var all []pieces.Piece
		if p.own(s.node) {
			all, err = p.measureHere(ctx, s.maps)
		} else {
			all, err = p.all.peers.measureAt(ctx, s.node, p.request(s.maps, s.hurry))
		}
		for k, one := range all {
			p.Each[s.maps[k]] = one
		}
		return err
	})
}

// measureHere finds what the pieces are of maps that are here, and of the parts that come after
// this one, which are read next as a rule.
func (p *column) measureHere(ctx context.Context, maps []int) ([]pieces.Piece, error) {
	n := 1
	if p.next > 0 && len(maps) == p.Maps.Len() {
		n = max(1, min(partsAhead, 1+int(min(p.next, partsAhead)), mostPieces/2/partsAhead/len(maps)))
	}
	all, err := p.all.copies.measureSome(ctx, p.files, p.request(maps, false), n)
	if err != nil {
		return nil, err
	}
	name := p.name()
	for _, next := range all[1:] {
		name[2]++
		p.all.measured.put(name, measurement{pieces: next, size: pieces.SizeOf(next)})
	}
	return all[0], nil
}

// gather writes the pieces of some maps into dst, one after the other.
func (p *column) gather(ctx context.Context, wanted []int, dst []byte) error {
	begin := p.Begins(wanted)
	return p.each(ctx, wanted, func(s demand) error {
		for _, run := range runs(s.maps) { // pieces that stand one after the other come at once
			r, first, last := p.request(run, s.hurry), run[0], run[len(run)-1]+1
			at := dst[begin[first]:begin[last]]
			if p.own(s.node) {
				if err := p.all.copies.read(ctx, p.files, r, p.Each[first:last], at); err != nil {
					return err
				}
			} else if err := p.all.peers.fetch(ctx, s.node, r, p.Each[first:last], at); err != nil {
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
