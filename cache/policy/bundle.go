package policy

import "math"

// Room is memory and disk, in bytes.
type room struct{ mem, disk int64 }

func (r room) holds(o room) bool { return o.mem <= r.mem && o.disk <= r.disk }

func (r room) less(o room) room { return room{r.mem - o.mem, r.disk - o.disk} }

func (r room) plus(o room) room { return room{r.mem + o.mem, r.disk + o.disk} }

// A bundle moves together: an item, or all items of a group.
type bundle struct {
	bytes [Levels]int64   // below zero: it cannot be there
	gain  [Levels]float64 // over the horizon, against the source
	next  float64         // the first use that is known, or +Inf
	last  float64
	job   int32
	first int32 // of its items; draft.link has the others
	now   Level // Levels: some here, some there
	floor Level
	base  Level // where its pin holds it; Source if it has none, or none that fits
	level Level // where it shall be
}

// takes is the room that the bundle needs at a level.
func (b *bundle) takes(at Level) room {
	switch at {
	case Disk:
		return room{disk: b.bytes[Disk]}
	case Packed, RAM:
		return room{mem: b.bytes[at]}
	}
	return room{}
}

func (b *bundle) can(at Level) bool { return at == Source || b.bytes[at] >= 0 }

func (b *bundle) add(o *bundle) {
	for at := range Levels {
		b.gain[at] += o.gain[at]
		if b.bytes[at] < 0 || o.bytes[at] < 0 {
			b.bytes[at] = -1
		} else {
			b.bytes[at] += o.bytes[at]
		}
	}
	b.next, b.last = math.Min(b.next, o.next), math.Max(b.last, o.last)
	b.floor = max(b.floor, o.floor)
	if b.job < 0 || o.job >= 0 && o.job < b.job {
		b.job = o.job
	}
	if b.now != o.now {
		b.now = Levels
	}
}

func (b *bundle) density(at Level) float64 { return b.gain[at] / math.Max(1, float64(b.bytes[at])) }
