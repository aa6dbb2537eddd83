package wire

import "time"

// slowest is the least that a peer must give or take on the average, in bytes per
// second: less than a disk does under any load, more than is worth waiting for.
const slowest = 64 << 10

// A pace bounds the reads and writes of one exchange in time: each by the patience, and
// all together by what slowest allows. The time between them does not count.
type pace struct {
	patience time.Duration
	moved    int64
	spent    time.Duration
	began    time.Time // the read or write under way
}

// wait begins a read or write, and returns when it has to be over.
func (p *pace) wait() time.Time {
	p.began = time.Now()
	left := p.patience + time.Duration(p.moved/slowest)*time.Second - p.spent
	return p.began.Add(min(p.patience, left))
}

// done ends one that moved n bytes.
func (p *pace) done(n int) {
	p.moved += int64(n)
	p.spent += time.Since(p.began)
}

// A patience says how long an exchange may wait for what.
type patience struct {
	frame   time.Duration // until the other's next frame is there
	take    time.Duration // until the other takes something
	beat    time.Duration // between signs of life while there is nothing to send
	nothing time.Duration // without a byte of data, whatever else is said
}
