package supply_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// One node's ranks are served by lists of their lines alone, or of all lines,
// and nothing is made for the ranks of other nodes.
func TestRanksOfANode(t *testing.T) {
	for _, row := range []struct {
		name string
		own  bool // lines of the ranks that are served, and no others
	}{{"own lines", true}, {"all lines", false}} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, 6, 4)
			s.config.Ranks = "2,4-5"
			if row.own {
				s.list(2, 4, 5)
			}
			s.serve()
			for rank := range 6 {
				served := rank == 2 || rank > 3
				for _, path := range []string{s.pipe(rank), s.mapped(rank)} {
					if _, err := os.Lstat(path); (err == nil) != served {
						t.Errorf("rank %d is served: %v, but %s: %v", rank, served, path, err)
					}
				}
			}
			for _, rank := range []int{2, 4, 5} {
				s.takeAll(rank, true)
			}
			s.ends() // clients of other nodes need not close their pairs here
		})
	}
}

// A mapped file has from the start the size that the rank's largest batch
// needs, whether supply made the file or found it.
func TestMappedFileHoldsTheLargest(t *testing.T) {
	s := newStage(t, 2, 12)
	largest := [2]int64{}
	for rank := range largest {
		dir := fmt.Sprintf("%s/rank-%d/batch-%06d", s.config.Batches, rank, 7+rank)
		must(t, os.WriteFile(dir, make([]byte, 3<<20+rank), 0o600))
		largest[rank] = 3<<20 + int64(rank)
	}
	must(t, os.WriteFile(s.mapped(1), nil, 0o600))
	s.serve()
	for rank, want := range largest {
		st, err := os.Stat(s.mapped(rank))
		must(t, err)
		if st.Size() < want {
			t.Errorf("rank %d: the mapped file has %d bytes at the start, and the largest batch %d", rank, st.Size(), want)
		}
	}
}

// A client may start before the server, where neither its pipe nor its mapped file
// is there yet. It looks for its pipe, and once that is there it maps the file for all
// of its batches, at one go.
func TestClientComesFirst(t *testing.T) {
	s := newStage(t, 4, 8)
	var early []*process
	for rank := range 4 {
		p := start(t, "first", s.pipe(rank), s.mapped(rank), "1000000")
		p.until("looking")
		early = append(early, p)
	}
	s.serve()
	for rank, p := range early {
		s.wantAll(rank, p.finish()[1:])
	}
	s.ends()
}

// With --once the server ends by itself: when one client has asked to the end
// and closed its pair, and another took its last batch and just stopped.
func TestOnceEnds(t *testing.T) {
	s := newStage(t, 3, 5)
	s.config.Once = true
	s.serve()
	s.takeAll(0, true)
	s.takeAll(1, false)
	c := client{}
	defer c.unmap()
	n, err := c.next(s.pipe(1), s.mapped(1), 5) // while rank 2 is not through, it may ask
	must(t, err)
	if n.status != 1 {
		t.Errorf("after the last batch: status %d, want 1", n.status)
	}
	select {
	case err := <-s.done:
		t.Fatalf("ended before rank 2 had a batch: %v", err)
	default:
	}
	s.takeAll(2, false)
	s.ends()
	if s.log.count("dropped") > 0 {
		t.Error(s.log.all())
	}
}

// list writes lists with the lines of these ranks.
func (s *stage) list(ranks ...int) {
	var maps, pipes strings.Builder
	for _, rank := range ranks {
		fmt.Fprintln(&maps, s.mapped(rank))
		fmt.Fprintln(&pipes, s.pipe(rank))
	}
	must(s.t, os.WriteFile(s.config.Maps, []byte(maps.String()), 0o600))
	must(s.t, os.WriteFile(s.config.Pipes, []byte(pipes.String()), 0o600))
}

// takeAll is a client of this process that reads all batches of a rank, and
// may ask for the end and close its pair.
func (s *stage) takeAll(rank int, closes bool) {
	s.t.Helper()
	c := client{}
	defer c.unmap()
	for k := range s.batches {
		n, err := c.next(s.pipe(rank), s.mapped(rank), uint64(k))
		must(s.t, err)
		if n.status != 0 || string(c.data[:n.total]) != string(content(rank, k)) {
			s.t.Fatalf("rank %d, batch %d: told %+v, or other bytes", rank, k, n)
		}
	}
	if closes {
		n, err := c.next(s.pipe(rank), s.mapped(rank), uint64(s.batches))
		must(s.t, err)
		if n.status != 1 {
			s.t.Fatalf("rank %d: status %d at the end, want 1", rank, n.status)
		}
		must(s.t, request(s.pipe(rank), closing))
	}
}

const closing = 1<<64 - 1

// ends waits until the server has ended by itself.
func (s *stage) ends() {
	s.t.Helper()
	select {
	case err := <-s.done:
		must(s.t, err)
		s.cancel()
		s.cancel = nil
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("the server goes on:\n%s", s.log.all())
	}
}
