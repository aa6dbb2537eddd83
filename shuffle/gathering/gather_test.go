package gathering_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
)

// A site is a cluster with its nodes, of which this one is a; b and c are up, x and y down. The
// lock guards what is asked, and what answers are left.
type site struct {
	maps  []state.Commit // as the cluster has them now
	after []state.Commit // and as it has them once it is asked

	mu      sync.Mutex
	asked   []string
	answers map[string][]error // of each node, the next first; then it gives everything
}

func (s *site) Self() string        { return "a" }
func (s *site) Up() map[string]bool { return map[string]bool{"a": true, "b": true, "c": true} }

func (s *site) Know(context.Context) error {
	if s.after != nil {
		s.maps = s.after
	}
	return nil
}

func (s *site) Commit(_, number uint64) (state.Commit, bool) { return s.maps[number], true }

// ask notes who is asked for what, with "!" if that is in a hurry.
func (s *site) ask(node string, r gathering.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := node
	for _, c := range r.Maps {
		said += fmt.Sprint(c.Map)
	}
	if r.Hurry {
		said += "!"
	}
	s.asked = append(s.asked, said)
	if left := s.answers[node]; len(left) > 0 {
		s.answers[node] = left[1:]
		return left[0]
	}
	return nil
}

func (s *site) Measure(_ context.Context, node string, r gathering.Request, parts int) ([][]pieces.Piece, error) {
	all := make([][]pieces.Piece, parts)
	for k := range all {
		all[k] = make([]pieces.Piece, len(r.Maps))
		for i := range all[k] {
			all[k][i].Size = int64(r.Part) + int64(k)
		}
	}
	return all, s.ask(node, r)
}

func (s *site) Fetch(_ context.Context, node string, r gathering.Request, _ []pieces.Piece, _ []byte) error {
	return s.ask(node, r)
}

func (s *site) Portion(_ context.Context, node string, r gathering.Request, _ pieces.Piece, _ int64, _ []byte) error {
	return s.ask(node, r)
}

func (s *site) Look(_ context.Context, node string, r gathering.Request) error {
	return s.ask(node, r)
}

// mapsOn are maps of which each of some nodes has a copy.
func mapsOn(nodes ...string) (all []state.Commit) {
	for i, on := range nodes {
		all = append(all, state.Commit{Map: uint64(i), Sum: 1, Nodes: strings.Split(on, "")})
	}
	return all
}

// column is a column of a piece of each map, which are empty.
func (s *site) column() *gathering.Column {
	is := merging.Pieces{Maps: state.MapsOf(s.maps...), Each: make([]pieces.Piece, len(s.maps))}
	return &gathering.Column{Pieces: is, All: gathering.New(s), Nodes: s}
}

var (
	errSilent  = fmt.Errorf("it says nothing: %w", meta.ErrUnavailable)
	errDamaged = fmt.Errorf("its copy is damaged: %w", meta.ErrCorrupt)
	errOther   = errors.New("it cannot")
)

// Pieces come from this node if it has them, else from one that is up, else from one that is down,
// as that may be wrong; and where a node does not give them from the next, in rounds.
func TestWhichNodeIsAsked(t *testing.T) {
	for name, row := range map[string]struct {
		maps, after []state.Commit
		not         error
		answers     map[string][]error
		atOnce      bool // nodes are asked at the same time
		want        []string
		err         error
	}{
		"this one first":                      {maps: mapsOn("ba"), want: []string{"a0"}},
		"unless it keeps nothing":             {maps: mapsOn("ba"), not: errOther, want: []string{"b0"}},
		"up before down":                      {maps: mapsOn("xb"), want: []string{"b0"}},
		"in a hurry if another is up":         {maps: mapsOn("bc"), want: []string{"b0!"}},
		"maps that stand together at once":    {maps: mapsOn("b", "b", "c", "b"), atOnce: true, want: []string{"b01", "b3", "c2"}},
		"the next when one fails":             {maps: mapsOn("abc"), answers: map[string][]error{"a": {errOther}, "b": {errOther}}, want: []string{"a0", "b0!", "c0"}},
		"a silent one last, and with time":    {maps: mapsOn("bc"), answers: map[string][]error{"b": {errSilent}, "c": {errOther}}, want: []string{"b0!", "c0", "b0"}},
		"a silent one after one that is down": {maps: mapsOn("bcx"), answers: map[string][]error{"b": {errSilent}, "c": {errOther}}, want: []string{"b0!", "c0", "x0"}},
		"again when it gave a copy up": {
			maps: mapsOn("b", "bc"), after: mapsOn("c", "bc"), atOnce: true,
			answers: map[string][]error{"b": {errDamaged}}, want: []string{"b01", "b1!", "c0"},
		},
		"not again when it did not":        {maps: mapsOn("bc"), answers: map[string][]error{"b": {errDamaged}}, want: []string{"b0!", "c0"}},
		"none when a map has no copy left": {maps: []state.Commit{{}}, err: meta.ErrLost},
		"none when all have failed":        {maps: mapsOn("b"), answers: map[string][]error{"b": {errOther}}, want: []string{"b0"}, err: errOther},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{maps: row.maps, after: row.after, answers: row.answers}
			p := s.column()
			p.NotOwn = row.not
			if err := p.Gather(t.Context(), p.Every(), nil); !errors.Is(err, row.err) {
				t.Errorf("it ends with %v", err)
			}
			if row.atOnce {
				slices.Sort(s.asked)
			}
			if !slices.Equal(s.asked, row.want) {
				t.Errorf("%q are asked, not %q", s.asked, row.want)
			}
		})
	}
}

// A node that was silent is asked after others for a while, also for other parts, and then as before.
func TestASilentNodeIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{maps: mapsOn("bc"), answers: map[string][]error{"b": {errSilent}}}
		all := gathering.New(s)
		gather := func(part uint64) {
			p := s.column()
			p.Number, p.All = part, all
			if err := p.Gather(t.Context(), p.Every(), nil); err != nil {
				t.Error(err)
			}
		}
		gather(0)
		gather(1)
		time.Sleep(time.Minute)
		gather(2)
		if want := []string{"b0!", "c0", "c0", "b0!"}; !slices.Equal(s.asked, want) {
			t.Errorf("%q are asked, not %q", s.asked, want)
		}
	})
}

// A piece that comes in portions is asked for as others are.
func TestPortions(t *testing.T) {
	for _, why := range []error{errDamaged, errOther, errSilent} {
		s := &site{maps: mapsOn("bc"), answers: map[string][]error{"b": {why}}}
		if why == errDamaged {
			s.after = mapsOn("c")
		}
		node, err := s.column().Bring(t.Context(), 0, 0, nil, new(merging.Failures))
		if want := []string{"b0!", "c0"}; err != nil || node != "c" || !slices.Equal(s.asked, want) {
			t.Errorf("after %v it comes of %q, %v: %q are asked", why, node, err, s.asked)
		}
	}
}

// Of maps that are all here the parts that come next are measured too, and remembered, but none
// beyond the last.
func TestPartsAreMeasuredAhead(t *testing.T) {
	for _, row := range []struct {
		maps []state.Commit
		next uint64
		want int
	}{
		{mapsOn("a", "a"), 100, gathering.PartsAhead - 1},
		{mapsOn("a", "a"), 2, 2},
		{mapsOn("a", "b"), 100, 0},
		{mapsOn("b", "b"), 100, 0},
	} {
		s := &site{maps: row.maps}
		p := s.column()
		p.Number, p.Next = 5, row.next
		if err := p.Measure(t.Context()); err != nil || p.Each[0].Size != 5 || p.Each[1].Size != 5 {
			t.Errorf("pieces of %v: %v, %v", row.maps, p.Each, err)
		}
		ahead := 0
		for name := p.Name(); ; ahead++ {
			name[2]++
			is, ok := p.All.Measured.Get(name)
			if !ok {
				break
			}
			if want := 2 * int64(name[2]); is.Size != want {
				t.Errorf("part %d has %d bytes, not %d", name[2], is.Size, want)
			}
		}
		if ahead != row.want {
			t.Errorf("%d parts are measured ahead of %d, not %d", ahead, row.next, row.want)
		}
	}
}
