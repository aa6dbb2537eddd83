package simulate

import (
	"math"

	"rankfs/meta/heap"
)

// A server is a resource that its transfers share evenly: the source, a disk,
// the processors that unpack. All of them advance by the same number of bytes
// at any time, so it is enough to know how many that are: a transfer ends when
// the server has advanced by its bytes since it came.
type server struct {
	rate   float64 // bytes a second, of all together
	stream float64 // of one of them at most
	slot   int32

	advanced float64 // by how many bytes, since it was idle last
	at       float64 // when that was so
	queue    heap.Heap[transfer]

	moved float64 // bytes, in all
}

// A transfer is the use of a server by a chain. It ends when the server has advanced so far.
type transfer struct {
	until float64 // of server.advanced
	set   uint64
	chain int32
}

// Before is the order in which transfers end; of two that end together the one
// that was set first does.
func (t transfer) Before(o transfer) bool {
	return t.until < o.until || t.until == o.until && t.set < o.set
}

// speed is the speed of each transfer.
func (s *server) speed() float64 {
	return math.Min(s.stream, s.rate/float64(len(s.queue)))
}

// advance brings the server up to date.
func (s *server) advance(now float64) {
	if n := len(s.queue); n > 0 && now > s.at {
		by := (now - s.at) * s.speed()
		s.advanced += by
		s.moved += by * float64(n)
	}
	s.at = now
}

// add begins a transfer.
func (s *server) add(c *clock, chain int32, bytes int64) {
	s.advance(c.now)
	if len(s.queue) == 0 {
		s.advanced = 0
	}
	c.set++
	s.queue.Push(transfer{s.advanced + float64(bytes), c.set, chain})
	s.setAlarm(c)
}

// end takes the transfer that ends first, when its time has come.
func (s *server) end(c *clock) (chain int32) {
	s.advance(c.now)
	n := len(s.queue)
	first := s.queue.Pop()
	s.moved += (first.until - s.advanced) * float64(n) // what rounding left
	s.advanced = first.until
	s.setAlarm(c)
	return first.chain
}

// setAlarm sets the alarm for the next end.
func (s *server) setAlarm(c *clock) {
	if len(s.queue) == 0 {
		c.clear(s.slot)
		return
	}
	c.wake(s.slot, c.now+math.Max(0, s.queue[0].until-s.advanced)/s.speed())
}
