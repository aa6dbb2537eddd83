package policy

// An ending is a span in a heap; the one that ends last comes first.
type ending struct{ *span }

func (e ending) Before(o ending) bool { return e.to > o.to }

// A timed is a time of a line, and how far it is; the nearest comes first.
type timed struct {
	at int32
	d  float64
}

func (t timed) Before(o timed) bool { return t.d < o.d }
