package simulate

import "rankfs/cache/policy"

// A chain brings a batch the bytes that it needs from one owner, a partition after the
// other, and to another node in the end. Or it is a move.
type chain struct {
	reader *reader
	step   int64
	owner  *node
	uses   []use
	at     int
	doing  doing
	whole  bool // the batch is the partition, in place
	link   flow

	item int32 // of a move
	to   policy.Level
}

// A use is the bytes that a batch takes of a partition.
type use struct {
	partition int32
	bytes     int64
}

// A flow is a transfer from one node to another. It gets the smaller of its
// even shares of the two links, so no link carries more than it can; what one
// cannot use because of the other is not given to others.
type flow struct {
	from, to *node
	left     float64 // bytes
	rate     float64
	at       float64 // when that was so
}

type doing uint8

const (
	asking  doing = iota // the source, until it sends
	loading              // a partition from the source
	alone                // what is used, and no more: there is no room for the partition, or no use
	asksOne              // the same, until it sends
	reading
	unpacking
	joined  // what another chain loads
	calling // another node, until it sends
	sending
	moving
	packing // what has made room
	nothing
)

var causes = [...]Cause{asking: Source, loading: Source, alone: Source, asksOne: Source, reading: Disk, unpacking: Decode,
	joined: Source, calling: Peer, sending: Peer}

// use adds to what the chain brings; grains of one partition are one use.
func (c *chain) use(u use) {
	if n := len(c.uses); n > 0 && c.uses[n-1].partition == u.partition {
		c.uses[n-1].bytes += u.bytes
		return
	}
	c.uses = append(c.uses, u)
}

func (c *chain) total() (bytes int64) {
	for _, u := range c.uses {
		bytes += u.bytes
	}
	return bytes
}

// count notes where a batch finds what it uses. It counts once it is opened.
func (c *chain) count(l policy.Level, bytes int64) {
	b := c.reader.batch(c.step)
	b.found[l]++
	b.from[l] += bytes
}
