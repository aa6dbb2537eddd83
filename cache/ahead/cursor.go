package ahead

// A Cursor is where a reader is in an order of steps that is known to its end, how fast
// it goes, and up to which step nothing that it comes to is missing. Times are in
// seconds. Scan is Pos or more.
type Cursor struct {
	Pos  uint64  // the step that is to be opened next
	Scan uint64  // no step from Pos to here is missing
	Run  int     // opens in order, less those that are no reason to believe it
	Pace float64 // from one step to the next, but for what was waited; zero until there were two in order

	barred uint64 // nothing is made ready from this step on, if bar
	bar    bool
}

// Trusted opens in order make a reader: fewer may be a person browsing.
const Trusted = 2

// Open moves a reader past a step that it opens.
func (c *Cursor) Open(step uint64) {
	c.Pos, c.bar = step+1, false
	c.Scan = max(c.Scan, c.Pos)
}

// Took notes how long a reader took from one step to the next.
func (c *Cursor) Took(seconds float64) {
	if c.Pace == 0 {
		c.Pace = seconds
	}
	c.Pace += (seconds - c.Pace) / 4
}

// Rewind takes a reader to the first step of another epoch. It is not forgotten that it
// reads in order, nor how fast.
func (c *Cursor) Rewind() { c.Pos, c.Scan, c.bar = 0, 0, false }

// Due is in how many seconds a reader comes to a step that opened one so long ago.
func (c *Cursor) Due(step uint64, ago float64) float64 {
	return float64(step+1-c.Pos)*c.Pace - ago
}

// Window is the number of steps ahead of a reader that are worth having, of a size, in its share
// of memory, and with so many fills at a time; most bounds it. It grows with trust.
func (c *Cursor) Window(size, memory int64, latency float64, fills, most int) uint64 {
	fit := max(1, memory/size-2) // beside the one being read and the one just read
	want := int64(c.Run)
	if c.Pace > 0 && c.Run > Trusted {
		want = Steps(latency, c.Pace, fills)
	}
	return uint64(max(0, min(want, fit, int64(most))))
}

// Missing is the first step in a window, and before the end, that is not here.
func (c *Cursor) Missing(window, end uint64, here func(step uint64) bool) (step uint64, ok bool) {
	last := min(c.Pos+window, end)
	if c.bar {
		last = min(last, c.barred)
	}
	for ; c.Scan < last; c.Scan++ {
		if !here(c.Scan) {
			return c.Scan, true
		}
	}
	return 0, false
}

// Gone notes that a step is missing that was here, if a reader comes to it.
func (c *Cursor) Gone(step uint64) {
	if step >= c.Pos {
		c.Scan = min(c.Scan, step)
	}
}

// BackOff has nothing be made ready from a step on until the reader has moved: it failed.
func (c *Cursor) BackOff(step uint64) {
	if step >= c.Pos {
		c.barred, c.bar = step, true
		c.Scan = min(c.Scan, step)
	}
}
