package record

// An output takes records, one after the other.
type output struct {
	bytes []byte           // where they are put; nil: they are counted alone
	at    uint64           // where the next one comes
	each  func(key []byte) // is told of each before it is put; nil: nobody is
}

// put puts a record that has that key.
func (o *output) put(key []byte, pieces ...[]byte) {
	if o.each != nil {
		o.each(key)
	}
	for _, p := range pieces {
		if o.bytes != nil {
			copy(o.bytes[min(o.at, uint64(len(o.bytes))):], p)
		}
		o.at += uint64(len(p))
	}
}
