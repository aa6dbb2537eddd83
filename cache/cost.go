package cache

import "time"

// A Cost is the time of fills: some for each, whatever its size, and some for its bytes, at a rate.
type Cost struct {
	Latency time.Duration
	Rate    float64 // bytes per second; zero if nothing says
	Bytes   int64   // of a fill, on the mean
}

// A cost tells the two parts of what fills take from each other, by fills of different
// sizes: it is the line that fits the latest best, their distances from it taken for
// what they are beside its length there.
type cost struct {
	fills, bytes, squares float64 // sums of weights, of these by bytes, and by their squares
	took, product         float64 // and by seconds, and by seconds and bytes
}

const (
	// costFills is over how many fills a cost goes.
	costFills = 32

	// costBytes: what fills of less take is mostly latency. A source that begins within
	// 0.1 ms and gives 2.5 GB a second takes as long to begin as for so many.
	costBytes = 256 << 10

	// apart is the least difference of sizes, as a variance beside the square of their mean,
	// before anything follows from it.
	apart = 0.05

	// costSingle: of fills of one size a rate follows if they are as large as that.
	costSingle = 1 << 20
)

func (c *cost) add(bytes float64, took time.Duration) {
	for _, sum := range []*float64{&c.fills, &c.bytes, &c.squares, &c.took, &c.product} {
		*sum *= 1 - 1.0/costFills
	}
	t, w := max(took.Seconds(), 1e-6), 1/((bytes+costBytes)*(bytes+costBytes))
	c.fills += w
	c.bytes += w * bytes
	c.squares += w * bytes * bytes
	c.took += w * t
	c.product += w * bytes * t
}

// line is the latency and the seconds of a byte, as far as sizes differ.
func (c *cost) line() (latency, each float64, ok bool) {
	det := c.fills*c.squares - c.bytes*c.bytes
	if c.fills == 0 || det <= apart*c.fills*c.squares {
		return 0, 0, false
	}
	each = (c.fills*c.product - c.bytes*c.took) / det
	latency = (c.took - each*c.bytes) / c.fills
	switch {
	case latency < 0:
		return 0, c.product / c.squares, true
	case each <= 0:
		return 0, 0, false
	}
	return latency, each, true
}

// duration is the time of a fill. Where all had one size, it is taken to be by its bytes.
func (c *cost) duration(bytes float64) time.Duration {
	seconds := 0.0
	if latency, each, ok := c.line(); ok {
		seconds = latency + bytes*each
	} else if c.bytes > 0 {
		seconds = c.took * bytes / c.bytes
	}
	return time.Duration(seconds * float64(time.Second))
}

// parts is the cost as far as it is known. Of small fills of one size no rate follows.
func (c *cost) parts() Cost {
	if c.fills == 0 {
		return Cost{}
	}
	bytes, seconds := c.bytes/c.fills, c.took/c.fills
	latency, each, ok := c.line()
	switch {
	case ok:
		return Cost{time.Duration(latency * float64(time.Second)), 1 / each, int64(bytes)}
	case bytes >= costSingle:
		return Cost{0, bytes / seconds, int64(bytes)}
	}
	return Cost{time.Duration(seconds * float64(time.Second)), 0, int64(bytes)}
}
