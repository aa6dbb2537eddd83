package policy

// climb goes up the hulls that hold at this price of disk.
func (d *draft) climb(bundles []bundle, price float64) {
	d.ladder.reset()
	var out [2]upgrade
	for i := range bundles {
		n, _ := bundles[i].upgrades(price, &out)
		d.ladder.add(int32(i), out[:n])
	}
	d.rise(bundles)
}

// more goes on from where bundles are, with what is left.
func (d *draft) more(bundles []bundle) {
	d.ladder.reset()
	var out [2]upgrade
	for i := range bundles {
		b := &bundles[i]
		n := b.hull(b.gain[b.level], b.takes(b.level).mem, &out)
		for _, s := range out[:n] {
			if s.bytes <= d.left.mem {
				d.ladder.add(int32(i), []upgrade{s})
			}
		}
	}
	d.rise(bundles)
	d.disk(bundles)
}

func (d *draft) rise(bundles []bundle) {
	d.ladder.climb(bundles, func() int64 { return d.left.mem }, func(b *bundle, s upgrade) {
		if b.gain[s.level] > b.gain[b.level] {
			d.put(b, s.level)
		}
	})
}

// disk puts bundles that are nowhere on disk, by gain for its bytes.
func (d *draft) disk(bundles []bundle) {
	d.ladder.reset()
	for i := range bundles {
		if b := &bundles[i]; b.level == Source && b.bytes[Disk] >= 0 && b.gain[Disk] > 0 {
			d.ladder.add(int32(i), []upgrade{{slope: b.density(Disk), level: Disk, bytes: b.bytes[Disk]}})
		}
	}
	d.ladder.climb(bundles, func() int64 { return d.left.disk }, func(b *bundle, s upgrade) { d.put(b, s.level) })
}

// strip takes everything back to the pins, and gives the room that there is then.
func (d *draft) strip(bundles []bundle) room {
	left := d.left
	for i := range bundles {
		b := &bundles[i]
		left = left.plus(b.takes(b.level)).less(b.takes(b.base))
		b.level = b.base
	}
	return left
}
