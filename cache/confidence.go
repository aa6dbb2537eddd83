package cache

import "rankfs/cache/ahead"

// A confidence is a guess whether the readers of a series go on in order. A run of
// opens that ends before it is proven, as the next open was elsewhere, lowers it: where opens
// are at random some always follow each other by chance. The lower it is, the more opens in
// order it takes until a reader is believed to come to what is next: until that is made ready,
// or stays for it.
//
// Where a series has no tenant it is full, a nil one. The cache's lock guards it.
type confidence struct {
	broken int    // runs that ended so of late, less what was proven since
	late   uint64 // a step so little behind may be of a worker of the rank that is late
}

// newConfidence is the confidence in the readers of a series. Where steps are few most are near by chance.
func newConfidence(s *Series) confidence { return confidence{late: min(near, s.Steps/8)} }

// near is how many steps a reader may leave out without being another one.
const near = 16

const trusted = ahead.Trusted

const (
	// proven opens in order are no chance: then confidence is full.
	proven = 2 * trusted

	// maxBroken bounds the runs that count. Two of them ask for one more open in order,
	// all for four: with eight readers of a rank of a hundred steps, at random, one open in
	// ten or so is the next one of some reader.
	maxBroken = 8
)

// first is the Run of a reader that begins.
func (c *confidence) first() int {
	if c == nil {
		return 1
	}
	return 1 - c.broken/2
}

// after is the Run of a reader that goes on at a step that is not ahead of it. A worker that
// is late ends no run.
func (c *confidence) after(at ahead.Cursor, step uint64) int {
	if c != nil && step < at.Pos && at.Pos-step <= c.late {
		return min(at.Run, 1)
	}
	c.ends(at)
	return c.first()
}

// ends notes that the run of a reader that stands there is over.
func (c *confidence) ends(at ahead.Cursor) {
	if c != nil && at.Run < proven {
		c.broken = min(c.broken+1, maxBroken)
	}
}

// proves notes that a run was proven.
func (c *confidence) proves() {
	if c != nil {
		c.broken = max(c.broken-2, 0)
	}
}
