package simulate

// A clock is virtual time and what is to happen at which. Each slot has one
// alarm at most, so that nothing is left behind when choices change. Of two at
// the same time the one set first goes first. It is not a heap.Heap, as that does not say
// where an element is: most alarms are set anew or taken back before they go off.
type clock struct {
	now   float64
	set   uint64 // how many alarms were set so far
	heap  []int32
	slots []alarm
}

// An alarm is when a slot of the clock goes off.
type alarm struct {
	at    float64
	set   uint64
	place int32 // in heap; below zero: not set
}

// grow makes slots up to n.
func (c *clock) grow(n int) {
	for len(c.slots) < n {
		c.slots = append(c.slots, alarm{place: -1})
	}
}

// wake sets the alarm of a slot, or sets it anew. Nothing happens in the past.
func (c *clock) wake(slot int32, at float64) {
	a := &c.slots[slot]
	c.set++
	a.at, a.set = max(at, c.now), c.set
	if a.place < 0 {
		a.place = int32(len(c.heap))
		c.heap = append(c.heap, slot)
	}
	c.down(c.up(int(a.place)))
}

// clear takes the alarm of a slot back.
func (c *clock) clear(slot int32) {
	a := &c.slots[slot]
	if a.place < 0 {
		return
	}
	i, last := int(a.place), len(c.heap)-1
	c.swap(i, last)
	c.heap, a.place = c.heap[:last], -1
	if i < last {
		c.down(c.up(i))
	}
}

// next goes on to the next alarm.
func (c *clock) next() (slot int32, ok bool) {
	if len(c.heap) == 0 {
		return 0, false
	}
	slot = c.heap[0]
	c.now = c.slots[slot].at
	c.clear(slot)
	return slot, true
}

func (c *clock) before(i, j int) bool {
	a, b := &c.slots[c.heap[i]], &c.slots[c.heap[j]]
	return a.at < b.at || a.at == b.at && a.set < b.set
}

func (c *clock) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.slots[c.heap[i]].place, c.slots[c.heap[j]].place = int32(i), int32(j)
}

func (c *clock) up(i int) int {
	for i > 0 && c.before(i, (i-1)/2) {
		c.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (c *clock) down(i int) {
	for {
		least := i
		for j := 2*i + 1; j <= 2*i+2 && j < len(c.heap); j++ {
			if c.before(j, least) {
				least = j
			}
		}
		if least == i {
			return
		}
		c.swap(i, least)
		i = least
	}
}
