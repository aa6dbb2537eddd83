package pressure

// An Allowance is the memory that a cache may use for now, and whether it may grow.
type Allowance struct {
	Bytes int64 // of memory, in all its tiers that are in memory
	Ahead bool  // whether to fetch batches that no open waits for yet
}

const (
	// stallHigh is the part of the time in which tasks may wait for memory
	// before the cache gives some up; below stallLow it may take some again.
	stallHigh, stallLow = 0.10, 0.01
	// notches is in how many notches the budget is divided: less is no change.
	notches = 64
	// growth is how many notches may be taken back at a time: with two samples a
	// second all of a budget takes eight seconds, so a job that starts beside
	// us is seen before its memory is gone.
	growth = 4
	// decay is how many notches are given up at a time when tasks do nothing but
	// wait: a budget is a quarter of itself after six seconds.
	decay = 4
)

// first is allowed before anything is known of the memory that others will take,
// and this process itself, which has just begun: half of the room that is left,
// unless the whole budget finds room.
func first(s Sample, budget int64) int64 {
	if a := Allowed(s, budget, budget); a < budget {
		return a / 2
	}
	return budget
}

// Allowed returns how many bytes of a budget may be used, after last was
// allowed before. It follows a limit at once on the way down, whatever that
// costs, because the alternative is to be killed. While tasks stall it goes down
// notch by notch, but not below a quarter of the budget, since others may be to
// blame. It goes up slowly, and only when there is room for two notches and hardly
// a process has stalled for ten seconds.
func Allowed(s Sample, budget, last int64) int64 {
	budget = min(max(budget, 0), NoLimit>>1)
	last = min(max(last, 0), budget)
	notch := max(budget/notches, 1)
	room := max(s.charged()+s.spare(), 0)
	if room < budget {
		room -= room % notch
	}
	switch {
	case s.Recent >= stallHigh:
		return min(room, eased(s.Recent, s.Held, budget, last))
	case room < last:
		return room
	case room < last+2*notch || s.Recent >= stallLow || s.Stall.Mean >= stallLow:
		return last
	}
	return min(room, budget, last+growth*notch)
}

// eased is allowed while tasks stall for too large a part of the time.
func eased(stall float64, held, budget, last int64) int64 {
	down := int64(min(stall/stallHigh, decay)) * max(budget/notches, 1)
	return max(min(held, last)-down, min(last, budget/4))
}

// Ahead returns whether to fetch batches that no open waits for yet; last is the
// answer before. It is false while tasks stall, and while half of the reserve is
// gone, which the cache cannot help at that moment or there would be more.
func Ahead(s Sample, last bool) bool {
	switch {
	case s.Recent >= stallHigh || s.Room() < reserve(s.Limit)/2:
		return false
	case s.Recent < stallLow && s.Stall.Mean < stallLow && s.spare() >= 0:
		return true
	}
	return last
}
