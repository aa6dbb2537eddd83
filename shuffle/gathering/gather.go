package gathering

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

// A Demand is a request to a node for maps. It is in a hurry if other nodes have them too.
type Demand struct {
	Node  string
	Maps  []int
	Hurry bool
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
func (p *Column) from(wanted []int, failed *merging.Failures) ([]Demand, error) {
	why := failed.Now()
	self := p.All.Self()
	has := func(id string) bool { return why[id] != nil || id == self && p.NotOwn != nil }
	up := p.All.Up()
	stateOf := func(id string) nodeState {
		switch {
		case p.All.slow.are(id):
			return isSlow
		case !up[id]:
			return isDown
		}
		return isUp
	}
	here, from := Demand{Node: self}, make(map[string]*Demand)
	for k, c := range p.now(wanted) {
		i := wanted[k]
		switch {
		case len(c.Nodes) == 0:
			return nil, lost(c)
		case !has(self) && slices.Contains(c.Nodes, self):
			here.Maps = append(here.Maps, i)
			continue
		}
		left := slices.DeleteFunc(slices.Clone(c.Nodes), has)
		if len(left) == 0 {
			return nil, fmt.Errorf("map %d of the shuffle pool: no node that has a copy gives it: %w", c.Map, p.refusals(why))
		}
		slices.SortStableFunc(left, func(a, b string) int { return cmp.Compare(stateOf(a), stateOf(b)) })
		s := from[left[0]]
		if s == nil {
			s = &Demand{Node: left[0], Hurry: true}
			from[left[0]] = s
		}
		s.Maps = append(s.Maps, i)
		s.Hurry = s.Hurry && len(left) > 1 && stateOf(left[1]) == isUp
	}
	all := make([]Demand, 0, 1+len(from))
	if here.Maps != nil {
		all = append(all, here)
	}
	for _, s := range from {
		all = append(all, *s)
	}
	return all, nil
}

// refusals are why no node gives something.
func (p *Column) refusals(why map[string]error) error {
	all := slices.Collect(maps.Values(why))
	if p.NotOwn != nil {
		all = append(all, p.NotOwn)
	}
	return errors.Join(all...)
}

// Ask has what is wanted of the maps of a node done by do. Where that fails, another node
// that has a copy is asked; and the same one again, if it has learned that a copy is bad.
func (p *Column) Ask(ctx context.Context, wanted []int, do func(Demand) error) error {
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
			case !errors.Is(err, meta.ErrCorrupt) || !p.gaveUp(ctx, from[i].Node, from[i].Maps):
				p.failed(failed, from[i], err)
			}
			wanted = append(wanted, from[i].Maps...)
		}
		slices.Sort(wanted)
	}
	return nil
}

// failed notes what a demand has failed with. A node that was in a hurry may be slow: it is asked
// again, and has time then, if no other is left.
func (p *Column) failed(all *merging.Failures, s Demand, err error) {
	if s.Hurry && (errors.Is(err, meta.ErrUnavailable) || errors.Is(err, meta.ErrBusy)) {
		p.All.slow.add(s.Node)
		return
	}
	all.Add(s.Node, err)
}

// asked is how many nodes a part asks at a time.
const asked = 16

// together calls do for each node.
func together(from []Demand, do func(Demand) error) []error {
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

// Measure finds how long the pieces are, and what they hash to.
func (p *Column) Measure(ctx context.Context) error {
	p.Each = make([]pieces.Piece, p.Maps.Len())
	return p.Ask(ctx, p.Every(), func(s Demand) error {
		all, err := p.measure(ctx, s)
		for k, one := range all {
			p.Each[s.Maps[k]] = one
		}
		return err
	})
}

// measure finds what the pieces of a demand are; if all are here, also those of the parts that
// come after this one, which are read next as a rule.
func (p *Column) measure(ctx context.Context, s Demand) ([]pieces.Piece, error) {
	n := 1
	if p.Own(s.Node) && p.Next > 0 && len(s.Maps) == p.Maps.Len() {
		n = max(1, min(PartsAhead, 1+int(min(p.Next, PartsAhead)), maxPieces/2/PartsAhead/len(s.Maps)))
	}
	all, err := p.Nodes.Measure(ctx, s.Node, p.Request(s.Maps, s.Hurry), n)
	if err != nil {
		return nil, err
	}
	name := p.Name()
	for _, next := range all[1:] {
		name[2]++
		p.All.Measured.Put(name, Measurement{Pieces: next, Size: pieces.SizeOf(next)})
	}
	return all[0], nil
}

// Gather writes the pieces of some maps into dst, one after the other.
func (p *Column) Gather(ctx context.Context, wanted []int, dst []byte) error {
	begin := p.Begins(wanted)
	return p.Ask(ctx, wanted, func(s Demand) error {
		for _, run := range runs(s.Maps) { // pieces that stand one after the other come at once
			r, first, last := p.Request(run, s.Hurry), run[0], run[len(run)-1]+1
			if err := p.Nodes.Fetch(ctx, s.Node, r, p.Each[first:last], dst[begin[first]:begin[last]]); err != nil {
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
