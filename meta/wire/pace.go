package wire

import "time"

// slowest is the least that a peer must give or take on the average, in bytes per
// second: less than a disk does under any load, more than is worth waiting for.
const slowest = 64 << 10

// A pace bounds the steps of one exchange in time: each by the patience, and
// all together by what slowest allows. The time between steps does not count.
type pace struct {
	patience time.Duration
	moved    int64
	spent    time.Duration
	began    time.Time // the step under way
}

// step begins one and returns when it has to be over.
func (p *pace) step() time.Time {
	p.began = time.Now()
	left := p.patience + time.Duration(p.moved/slowest)*time.Second - p.spent
	return p.began.Add(min(p.patience, left))
}

// done ends a step that moved n bytes.
func (p *pace) done(n int) {
	p.moved += int64(n)
	p.spent += time.Since(p.began)
}

// A patience says how long the steps of an exchange may take.
type patience struct {
	step    time.Duration // until the other's next frame is there
	take    time.Duration // until the other takes something
	beat    time.Duration // between signs of life while there is nothing to send
	nothing time.Duration // without a byte of data, whatever else is said
}
