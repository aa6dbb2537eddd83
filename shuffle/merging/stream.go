package merging

import (
	"context"
	"slices"

	"github.com/cespare/xxhash/v2"

	"rankfs/shuffle/record"
)

// A stream is a run whose pieces come in portions. It is the merge's, and while a portion is
// fetched, between start and arrived, what is below came is the fetching goroutine's.
type stream struct {
	feed
	here  held // what is not to be fetched
	queue chan<- *stream
	next  *portion // is fetched; nil: nothing is
	kept  *portion // is merged
	rest  []byte   // came before, and is no whole record yet
	past  bool     // the end of the range
	err   error    // all that comes any more

	came     chan error
	portions [portionsEach]portion
	left     []stretch // of which something is to be fetched
	want     int64     // bytes of a portion, unless the piece ends
	at       int64     // how far the first of those was fetched, what that hashes to, and of whom it came
	sum      *xxhash.Digest
	nodes    []string
	looked   bool // at all of it, as it has a long record
}

// A feed is for what the streams of a merge fetch.
type feed struct {
	ctx    context.Context
	merger *merger
	failed *Failures
}

// A portion is some bytes of a piece, and room before them for the begin of a record.
type portion struct {
	room  []byte
	head  int
	give  func() // gives it back, if the room is this portion's alone
	bytes []byte
	of    stretch
	last  bool // of the piece
}

// headOf is the room before so many bytes: mostly enough for a record.
func headOf(size int64) int64 { return max(4096, size/8) }

func roomOf(size int64) int64 { return headOf(size) + size }

func newStream(f feed, of []stretch, here held, size int64, room []byte, queue chan<- *stream) *stream {
	s := &stream{feed: f, here: here, queue: queue, came: make(chan error, 1), left: of, want: size, sum: xxhash.New()}
	n := roomOf(size)
	for i := range s.portions {
		s.portions[i] = portion{room: room[n*int64(i) : n*int64(i+1)], head: int(headOf(size))}
	}
	return s
}

// more implements More of a record.Run.
func (s *stream) more() (buffer []byte, some bool, err error) {
	for {
		is := s.arrived()
		if is == nil {
			return nil, false, s.err
		}
		if s.past {
			s.start(is, s.kept)
			continue
		}
		b, err := s.join(is)
		if err != nil {
			return nil, false, err
		}
		n := len(b)
		if !is.last {
			n = s.merger.Records.Whole(b)
		}
		if s.rest = b[n:]; n == 0 && !is.last {
			if err := s.long(is); err != nil {
				return nil, false, err
			}
		}
		s.start(is, s.kept)
		piece, err := s.cut(b[:n], is.of.keys)
		if err != nil {
			return nil, false, err
		}
		if len(piece) > 0 {
			s.kept = is
			return piece, true, nil
		}
	}
}

// join puts a portion behind what came before it.
func (s *stream) join(is *portion) ([]byte, error) {
	n := len(s.rest)
	if n == 0 {
		return is.bytes, nil
	}
	if n > is.head {
		was := *is
		if err := is.reserve(s.merger, 2*n, max(len(is.bytes), int(s.want))); err != nil {
			return nil, s.fail(err)
		}
		is.bytes = is.room[is.head : is.head+copy(is.room[is.head:], was.bytes)]
		was.close()
	}
	copy(is.room[is.head-n:], s.rest)
	return is.room[is.head-n : is.head+len(is.bytes)], nil
}

// cut cuts records to a range.
func (s *stream) cut(b []byte, keys record.Range) ([]byte, error) {
	b, err := s.merger.Records.Cut(b, record.Range{From: keys.From})
	if err != nil {
		return nil, err
	}
	some, err := s.merger.Records.Cut(b, record.Range{To: keys.To})
	s.past = len(some) < len(b)
	return some, err
}

// long has larger portions come, as one of this size has no whole record. That a record is
// so long is believed once all of the piece was looked at.
func (s *stream) long(is *portion) error {
	s.want *= 2
	if s.looked {
		return nil
	}
	s.looked = true
	for _, node := range s.nodes {
		if err := is.of.of.Look(s.ctx, is.of.i, node); err != nil {
			return s.fail(&badPiece{is.of, s.nodes})
		}
	}
	return nil
}

// drain has the rest of the run come, which is right if there is no error.
func (s *stream) drain() error {
	for is := s.arrived(); is != nil; is = s.arrived() {
		s.start(is)
	}
	return s.err
}

// arrived waits for the portion that is fetched; at the end there is none.
func (s *stream) arrived() *portion {
	is := s.next
	if is == nil {
		return nil
	}
	err := <-s.came
	s.next = nil
	if err != nil {
		s.err = err
		return nil
	}
	return is
}

// start has one more portion fetched, if there is one, into one that is not used.
func (s *stream) start(used ...*portion) {
	if len(s.left) == 0 || s.err != nil {
		return
	}
	for i := range s.portions {
		if is := &s.portions[i]; !slices.Contains(used, is) {
			s.next = is
			s.queue <- s
			return
		}
	}
}

func (s *stream) fail(err error) error {
	s.err = err
	return err
}

// fetch fetches the next portion.
func (s *stream) fetch() error {
	is, of := s.next, s.left[0]
	is.of, is.last = of, true
	if b := s.here[of.of][of.i]; b != nil {
		is.bytes, s.left = b, s.left[1:]
		return nil
	}
	piece := of.piece()
	n := int(min(s.want, piece.Size-s.at))
	if n > len(is.room)-is.head {
		was := *is
		if err := is.reserve(s.merger, is.head, n); err != nil {
			return err
		}
		was.close()
	}
	is.bytes = is.room[is.head : is.head+n]
	if n > 0 {
		node, err := of.of.Bring(s.ctx, of.i, s.at, is.bytes, s.failed)
		if err != nil {
			return err
		}
		if !slices.Contains(s.nodes, node) {
			s.nodes = append(s.nodes, node)
		}
		s.sum.Write(is.bytes)
		s.at += int64(n)
	}
	switch {
	case s.at < piece.Size:
		is.last = false
		return nil
	case n > 0 && s.sum.Sum64() != piece.Sum:
		return &badPiece{of, s.nodes}
	}
	s.left, s.at, s.nodes, s.looked = s.left[1:], 0, nil, false
	s.sum.Reset()
	return nil
}

// close gives back what long records have taken.
func (s *stream) close() {
	for i := range s.portions {
		s.portions[i].close()
	}
}

// reserve has a portion have room of its own for so many bytes.
func (is *portion) reserve(p *merger, head, n int) error {
	b, err := p.memory(int64(head + n))
	if err == nil {
		is.room, is.head, is.give = b, head, p.on.room.Charge(int64(head+n))
	}
	return err
}

func (is *portion) close() {
	if is.give != nil {
		free(is.room)
		is.give()
	}
}
