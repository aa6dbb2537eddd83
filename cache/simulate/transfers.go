package simulate

import (
	"math"
	"slices"
)

// Transfers are the chains under way, on the clock that says when each of them goes on,
// and their shares of the links between nodes. The slots of the clock are those of
// ranks, then of servers, then of chains.
type transfers struct {
	clock  clock
	first  int32 // slot of chains
	chains []chain
	idle   []int32 // places of chains that have ended
	link   float64 // bytes a second, of each node in each direction
}

// chain begins one, in the place of one that has ended.
func (t *transfers) chain(k *reader, step int64, owner *node) int32 {
	if len(t.idle) == 0 {
		t.idle = append(t.idle, int32(len(t.chains)))
		t.chains = append(t.chains, chain{})
		t.clock.grow(int(t.first) + len(t.chains))
	}
	id := t.idle[len(t.idle)-1]
	t.idle = t.idle[:len(t.idle)-1]
	c := &t.chains[id]
	*c = chain{reader: k, step: step, owner: owner, uses: c.uses[:0]}
	return id
}

// free gives back the place of a chain that has ended.
func (t *transfers) free(id int32) {
	t.chains[id].doing = nothing
	t.idle = append(t.idle, id)
}

// later has a chain go on after so many seconds.
func (t *transfers) later(id int32, seconds float64) {
	t.clock.wake(t.first+id, t.clock.now+seconds)
}

func (t *transfers) connect(id int32, from, to *node, bytes int64) {
	t.chains[id].link = flow{from: from, to: to, left: float64(bytes), at: t.clock.now}
	from.out, to.in = append(from.out, id), append(to.in, id)
	t.share(from, to)
}

func (t *transfers) disconnect(id int32) {
	f := &t.chains[id].link
	f.from.out, f.to.in = without(f.from.out, id), without(f.to.in, id)
	t.share(f.from, f.to)
}

func without(ids []int32, id int32) []int32 {
	i := slices.Index(ids, id)
	return slices.Delete(ids, i, i+1)
}

// share divides the links anew on which something has changed.
func (t *transfers) share(from, to *node) {
	for _, id := range from.out {
		t.pace(id)
	}
	for _, id := range to.in {
		if t.chains[id].link.from != from {
			t.pace(id)
		}
	}
}

func (t *transfers) pace(id int32) {
	f, now := &t.chains[id].link, t.clock.now
	if now > f.at {
		f.left = math.Max(0, f.left-f.rate*(now-f.at))
	}
	f.rate, f.at = t.link/float64(max(len(f.from.out), len(f.to.in))), now
	t.clock.wake(t.first+id, now+f.left/f.rate)
}
