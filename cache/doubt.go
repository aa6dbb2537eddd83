package cache

// A doubt is how many runs of readers ended of late before they were proven: the next open
// was elsewhere. Where opens are at random some always follow each other by chance. So the
// more there is doubt, the more opens in order it takes until a reader is believed to come
// to what is next: until that is made ready, or stays for it.
//
// There is none, a nil one, where a series has no tenant. The cache's lock guards it.
type doubt struct {
	broken int
	late   uint64 // a step so little behind may be of a worker of the rank that is late
}

// newDoubt is that of the readers of a series. Where steps are few most are near by chance.
func newDoubt(s Series) doubt { return doubt{late: min(near, s.Steps()/8)} }

const (
	// proven is how many opens in order are no chance, where there is no doubt.
	proven = 2 * trusted

	// mostBroken bounds the runs that count. Two of them ask for one more open in order,
	// all for four: with eight readers of a rank of a hundred steps, at random, one open in
	// ten or so is the next one of some reader.
	mostBroken = 8
)

// first is the Run of a reader that begins.
func (d *doubt) first() int {
	if d == nil {
		return 1
	}
	return 1 - d.broken/2
}

// after is the Run of a reader that goes on at a step that is not ahead of it. A worker that
// is late ends no run.
func (d *doubt) after(r *reader, step uint64) int {
	if d != nil && step < r.Pos && r.Pos-step <= d.late {
		return min(r.Run, 1)
	}
	d.ends(r)
	return d.first()
}

// ends notes that the run of a reader is over.
func (d *doubt) ends(r *reader) {
	if d != nil && r.Run < proven {
		d.broken = min(d.broken+1, mostBroken)
	}
}

// proves notes that a run was proven.
func (d *doubt) proves() {
	if d != nil {
		d.broken = max(d.broken-2, 0)
	}
}
