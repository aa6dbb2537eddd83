package policy

// climb goes up the hulls that hold at this price of disk.
func (d *draft) climb(lots []lot, price float64) {
	d.ladder.reset()
	var out [2]step
	for i := range lots {
		n, _ := lots[i].steps(price, &out)
		d.ladder.add(int32(i), out[:n])
	}
	d.rise(lots)
}

// more goes on from where lots are, with what is left.
func (d *draft) more(lots []lot) {
	d.ladder.reset()
	var out [2]step
	for i := range lots {
		l := &lots[i]
		n := l.hull(l.gain[l.level], l.takes(l.level).mem, &out)
		for _, s := range out[:n] {
			if s.bytes <= d.left.mem {
				d.ladder.add(int32(i), []step{s})
			}
		}
	}
	d.rise(lots)
	d.disk(lots)
}

func (d *draft) rise(lots []lot) {
	d.ladder.climb(lots, func() int64 { return d.left.mem }, func(l *lot, s step) {
		if l.gain[s.level] > l.gain[l.level] {
			d.put(l, s.level)
		}
	})
}

// disk puts lots that are nowhere on disk, by gain for its bytes.
func (d *draft) disk(lots []lot) {
	d.ladder.reset()
	for i := range lots {
		if l := &lots[i]; l.level == Source && l.bytes[Disk] >= 0 && l.gain[Disk] > 0 {
			d.ladder.add(int32(i), []step{{slope: l.density(Disk), level: Disk, bytes: l.bytes[Disk]}})
		}
	}
	d.ladder.climb(lots, func() int64 { return d.left.disk }, func(l *lot, s step) { d.put(l, s.level) })
}

// strip takes everything back to the pins, and gives the room that there is then.
func (d *draft) strip(lots []lot) room {
	left := d.left
	for i := range lots {
		l := &lots[i]
		left = left.plus(l.takes(l.level)).less(l.takes(l.base))
		l.level = l.base
	}
	return left
}
