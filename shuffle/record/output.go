package record

// An output takes records, one after the other.
type output struct {
	bytes []byte           // where they are put; nil: they are counted alone, or some are put
	some  Windows          // where these are
	at    uint64           // where the next one comes
	each  func(key []byte) // is told of each before it is put; may be nil
}

// full reports whether all that is to be put somewhere was.
func (o *output) full() bool { return o.some != nil && len(o.some) == 0 }

// put puts a record that has that key.
func (o *output) put(key []byte, pieces ...[]byte) {
	o.begin(key)
	for _, p := range pieces {
		o.add(p)
	}
}

func (o *output) begin(key []byte) {
	if o.each != nil {
		o.each(key)
	}
}

func (o *output) add(b []byte) {
	if o.at < uint64(len(o.bytes)) {
		copy(o.bytes[o.at:], b)
	} else if o.some != nil {
		o.some = o.some.Put(int64(o.at), b)
	}
	o.at += uint64(len(b))
}
