package simulate

import (
	"math"
	"slices"
)

// A flow is a transfer from one node to another. It gets the smaller of its
// even shares of the two links, so no link carries more than it can; what one
// cannot use because of the other is not given to others.
type flow struct {
	from, to *node
	left     float64 // bytes
	rate     float64
	at       float64 // when that was so
}

func (r *run) connect(id int32, from, to *node, bytes int64) {
	r.chains[id].link = flow{from: from, to: to, left: float64(bytes), at: r.clock.now}
	from.out, to.in = append(from.out, id), append(to.in, id)
	r.share(from, to)
}

func (r *run) disconnect(id int32) {
	f := &r.chains[id].link
	f.from.out, f.to.in = without(f.from.out, id), without(f.to.in, id)
	r.share(f.from, f.to)
}

func without(ids []int32, id int32) []int32 {
	i := slices.Index(ids, id)
	return slices.Delete(ids, i, i+1)
}

// share divides the links anew on which something has changed.
func (r *run) share(from, to *node) {
	for _, id := range from.out {
		r.pace(id)
	}
	for _, id := range to.in {
		if r.chains[id].link.from != from {
			r.pace(id)
		}
	}
}

func (r *run) pace(id int32) {
	f, now := &r.chains[id].link, r.clock.now
	if now > f.at {
		f.left = math.Max(0, f.left-f.rate*(now-f.at))
	}
	f.rate, f.at = r.s.Costs.Link/float64(max(len(f.from.out), len(f.to.in))), now
	r.clock.wake(r.first+id, now+f.left/f.rate)
}
