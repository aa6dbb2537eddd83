package merging_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/record"
	"rankfs/shuffle/turns"
)

// A line is a record, with the key and the number in it.
type line struct {
	key    string
	number int
	text   string // as it stands in a map
}

// lines are those of one map. Few keys are in many maps; some lines are longer than a portion.
func lines(r *rand.Rand, s record.Spec, n, keys int) (all []line) {
	for range n {
		one := line{key: fmt.Sprintf("%04d", r.IntN(keys)), number: r.IntN(200) - 100}
		payload := fmt.Sprintf("%s\t%d\t", one.key, one.number)
		if r.IntN(500) == 0 {
			payload += strings.Repeat("x", r.IntN(40_000))
		}
		if s.Kind == meta.Sized {
			one.text = string(binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))) + payload
		} else {
			one.text = payload + "\n"
		}
		all = append(all, one)
	}
	return all
}

// sorted is what lines of several maps come to, by a plain sort.
func sorted(s record.Spec, all []line) (texts []string) {
	if s.Ordered() {
		slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.key, b.key) })
	}
	for i, one := range all {
		if s.Combine == meta.NotCombined {
			texts = append(texts, one.text)
			continue
		}
		if i == 0 || all[i-1].key != one.key {
			sum := 0
			for k := i; k < len(all) && all[k].key == one.key; k++ {
				sum += all[k].number
			}
			texts = append(texts, fmt.Sprintf("%s\t%d\n", one.key, sum))
		}
	}
	return texts
}

// A copyOf is a node's copy of a map.
type copyOf struct {
	node   string
	number uint64
}

// A site has maps, each of which nodes a and b have a copy of.
type site struct {
	maps   []state.Commit
	pieces map[uint64][][]byte // of each map
	here   map[uint64]bool     // maps that are in memory of this node
	bad    map[copyOf]bool     // copies of which one byte of each piece is another
	where  float64             // in it
	breaks bool                // node a gives the first portion of a piece, and no other
	denies bool                // it says that its copies are right

	mu     sync.Mutex // guards gaveUp
	gaveUp map[copyOf]bool
	lent   atomic.Int64
	asked  atomic.Int64 // for columns of samples
}

func newSite() *site {
	return &site{pieces: make(map[uint64][][]byte), here: make(map[uint64]bool), bad: make(map[copyOf]bool), gaveUp: make(map[copyOf]bool)}
}

// column is what some maps have of a part, or a slice of each.
func (s *site) column(number uint64, maps state.Maps) *column {
	c := &column{merging.Pieces{Number: number, Maps: maps}, s}
	for i := range maps.Len() {
		b := c.piece(i)
		c.Each = append(c.Each, pieces.Piece{Size: int64(len(b)), Sum: xxhash.Sum64(b), Begin: -1})
	}
	return c
}

// A column has what nodes of a site give.
type column struct {
	merging.Pieces
	site *site
}

func (c *column) piece(i int) []byte { return c.site.pieces[c.Map(i)][c.Number] }

func (c *column) Lend() (here [][]byte, give func()) {
	here = make([][]byte, c.Maps.Len())
	for i := range here {
		if c.site.here[c.Map(i)] {
			here[i] = c.piece(i)
		}
	}
	c.site.lent.Add(1)
	return here, func() { c.site.lent.Add(-1) }
}

func (c *column) Gather(_ context.Context, some []int, dst []byte) error {
	for _, i := range some {
		if c.site.bad[copyOf{"a", c.Map(i)}] && c.site.bad[copyOf{"b", c.Map(i)}] && len(c.piece(i)) > 0 {
			return meta.ErrLost
		}
		dst = dst[copy(dst, c.piece(i)):]
	}
	if len(dst) > 0 {
		return fmt.Errorf("%d bytes too many are wanted", len(dst))
	}
	return nil
}

func (c *column) Bring(ctx context.Context, i int, off int64, dst []byte, failed *merging.Failures) (string, error) {
	for _, node := range []string{"a", "b"} {
		switch {
		case failed.Now()[node] != nil, c.GaveUp(ctx, i, node):
			continue
		case node == "a" && c.site.breaks && off > 0:
			failed.Add(node, meta.ErrUnavailable)
			continue
		}
		b := slices.Clone(c.piece(i))
		if c.site.bad[copyOf{node, c.Map(i)}] {
			b[int(c.site.where*float64(len(b)-1))] ^= 1
		}
		copy(dst, b[off:off+int64(len(dst))])
		return node, nil
	}
	return "", meta.ErrLost
}

func (c *column) Look(_ context.Context, i int, node string) error {
	one := copyOf{node, c.Map(i)}
	if !c.site.bad[one] || node == "a" && c.site.denies {
		return nil
	}
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	c.site.gaveUp[one] = true
	return meta.ErrCorrupt
}

func (c *column) GaveUp(_ context.Context, i int, node string) bool {
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	return c.site.gaveUp[copyOf{node, c.Map(i)}]
}

// room is memory to divide maps in.
type room struct{}

func (room) More(n int64) ([]byte, error) { return make([]byte, n), nil }
func (room) Free([]byte)                  {}

// put divides a map, and puts it on both nodes.
func (s *site) put(t *testing.T, spec record.Spec, number uint64, all []line, parts uint64) {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(one.text)
	}
	is, err := spec.Divide(t.Context(), []byte(b.String()), nil, parts, room{})
	if err != nil {
		t.Fatal(err)
	}
	if is.AsWritten {
		is.Bytes = append([]byte(b.String()), is.Bytes...)
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(is.Offsets[8*i:]) }
	for i := range len(is.Offsets)/8 - 1 {
		s.pieces[number] = append(s.pieces[number], is.Bytes[at(i):at(i+1)])
	}
	s.maps = append(s.maps, state.Commit{Map: number, Size: int64(len(is.Bytes))})
}

// Whatever the records are, however little memory there is for them, and whatever one of two nodes
// does that have copies: a part is what a plain sort makes of its records. If a map is lost the
// part is as if it were not, or an error.
func TestPartsOfManyPieces(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		text := pick(r, "record=line key=1", "record=line key=1 sort=key", "record=line key=1 combine=sum", "record=sizes key=1-4 sort=key",
			"record=line key=1 by=range", "record=line key=1 by=range combine=sum", "record=sizes key=1-4 by=range")
		trouble := pick(r, "none", "damaged", "breaks off", "damaged and breaks off", "denies", "either", "lost")
		t.Run(fmt.Sprintf("seed=%d %s, %s", seed, text, trouble), func(t *testing.T) {
			w := &work{spec: specOf(t, text), merges: merging.New(pick(r, int64(4<<10), 4<<10, 64<<20), turns.New(1)), parts: 1 + r.Uint64N(4), slices: 1 + r.Uint64N(12)}
			s := newSite()
			s.breaks, s.denies, s.where = strings.Contains(trouble, "breaks"), trouble == "denies", r.Float64()
			keys, pieces := pick(r, 1, 5, 3000), w.parts
			if w.spec.Ranges {
				pieces = w.slices
			}
			var all [][]line
			for number := range r.Uint64N(7) {
				all = append(all, lines(r, w.spec, pick(r, 0, 1, 60, 2000, 4000), keys))
				s.put(t, w.spec, 3*number, all[number], pieces)
				s.here[3*number] = r.IntN(4) == 0
				a, b := copyOf{"a", 3 * number}, copyOf{"b", 3 * number}
				switch trouble {
				case "damaged", "damaged and breaks off", "denies":
					s.bad[a] = r.IntN(2) == 0
				case "either":
					s.bad[pick(r, a, b)] = true
				case "lost":
					s.bad[a], s.bad[b] = true, r.IntN(2) == 0
				}
			}
			from, to := 0, len(s.maps)
			if r.IntN(3) == 0 { // some of the maps
				from = r.IntN(1 + to)
				to = from + r.IntN(1+to-from)
			}
			got, err := w.records(t, s, s.maps[from:to])
			if n := s.lent.Load(); n != 0 {
				t.Errorf("pieces of %d columns are not given back", n)
			}
			if trouble == "lost" && (errors.Is(err, meta.ErrLost) || errors.Is(err, meta.ErrCorrupt)) {
				return
			}
			if want := w.wanted(slices.Concat(all[from:to]...)); err != nil || !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("parts are not those of a plain sort, %v", err)
			}
		})
	}
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func specOf(t *testing.T, text string) record.Spec {
	t.Helper()
	s, err := meta.ParseStage(text)
	if err != nil {
		t.Fatal(err)
	}
	return record.Spec(s.Records)
}

// A work is to make parts of maps; of such that have slices, parts that are ranges of keys.
type work struct {
	spec          record.Spec
	merges        *merging.Merges
	parts, slices uint64
}

// wanted are the records of all parts; if parts are ranges, of all together.
func (w *work) wanted(all []line) (parts [][]string) {
	if w.spec.Ranges {
		return [][]string{sorted(w.spec, all)}
	}
	for number := range w.parts {
		of := slices.DeleteFunc(slices.Clone(all), func(one line) bool { return xxhash.Sum64String(one.key)%w.parts != number })
		parts = append(parts, sorted(w.spec, of))
	}
	return parts
}

// records are those of all parts of some maps, as wanted has them. No key is in two ranges, and
// samples are asked for once for all of them.
func (w *work) records(t *testing.T, s *site, some []state.Commit) (parts [][]string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []string
	for number := range w.parts {
		of, asked := &column{merging.Pieces{Number: number, Maps: state.MapsOf(some...)}, s}, s.asked.Load()
		if !w.spec.Ranges {
			of = s.column(of.Number, of.Maps)
		}
		part := w.merges.Part(of, turns.Party{}, w.spec)
		if w.spec.Ranges {
			part.Range(merging.Stage{Number: 1, Generation: 1, Maps: state.MapsOf(s.maps...), Parts: w.parts, Slices: w.slices, Slice: s.slice(w.slices)})
			if part.Wants, err = part.Find(ctx); err != nil {
				return nil, err
			}
		}
		records, err := recordsOf(ctx, &part)
		if err != nil {
			return nil, err
		}
		switch {
		case !w.spec.Ranges:
			parts = append(parts, records)
			continue
		case number > 0 && s.asked.Load() > asked:
			t.Error("samples are taken once more")
		case len(all) > 0 && len(records) > 0 && w.keyOf(all[len(all)-1]) == w.keyOf(records[0]):
			t.Errorf("key %q is in two parts", w.keyOf(records[0]))
		}
		all = append(all, records...)
	}
	if w.spec.Ranges {
		parts = [][]string{all}
	}
	return parts, nil
}

// slice makes columns of slices of so many that each map has, or of samples of all.
func (s *site) slice(of uint64) func(context.Context, uint64, state.Maps) (merging.Column, error) {
	return func(_ context.Context, number uint64, maps state.Maps) (merging.Column, error) {
		if number == of {
			s.asked.Add(1)
		}
		return s.column(number, maps), nil
	}
}

// keyOf is the key of a record.
func (w *work) keyOf(text string) string {
	if w.spec.Kind == meta.Sized {
		text = text[4:]
	}
	return text[:4]
}

// What is read of some pieces is right although not all of them is read: what was damaged is
// brought again.
func TestFirstBytesOfPieces(t *testing.T) {
	s, spec := newSite(), specOf(t, "record=line key=1 sort=key")
	for number := range uint64(3) {
		s.put(t, spec, number, lines(rand.New(rand.NewPCG(number, 3)), spec, 3000, 500), 1)
		s.bad[copyOf{"a", number}] = true
	}
	of := s.column(0, state.MapsOf(s.maps...))
	part := merging.New(8<<10, turns.New(1)).Part(of, turns.Party{}, spec)
	var first []string
	err := part.Runs(t.Context(), func(runs []record.Run) error {
		first = nil
		for _, run := range runs {
			b, _, err := run.Next()
			if err != nil {
				return err
			}
			first = append(first, string(b))
		}
		return nil
	})
	if err != nil || len(first) != 3 {
		t.Fatalf("%d runs begin, %v", len(first), err)
	}
	for i, b := range first {
		if b == "" || len(b) == len(of.piece(i)) || !strings.HasPrefix(string(of.piece(i)), b) {
			t.Errorf("piece %d does not begin with the %d bytes that were read", i, len(b))
		}
	}
}

// A node that breaks off in the middle of a piece, and of whom it had wrong bytes, is in no way of the
// one that went on: that is right, and has more pieces.
func TestDamagedAndBrokenOff(t *testing.T) {
	s, spec := newSite(), specOf(t, "record=line key=1 sort=key")
	s.breaks, s.bad[copyOf{"a", 0}] = true, true
	var all []line
	for number := range uint64(2) {
		some := lines(rand.New(rand.NewPCG(number, 2)), spec, 3000, 500)
		s.put(t, spec, number, some, 1)
		all = append(all, some...)
	}
	part := merging.New(8<<10, turns.New(1)).Part(s.column(0, state.MapsOf(s.maps...)), turns.Party{}, spec)
	if records, err := recordsOf(t.Context(), &part); err != nil || !slices.Equal(records, sorted(spec, all)) {
		t.Errorf("the part has %d records of %d, %v", len(records), len(all), err)
	}
}

// recordsOf are the records of a part, as they are cut by where it says that they begin.
func recordsOf(ctx context.Context, part *merging.Part) (records []string, err error) {
	size, err := part.Size(ctx)
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if part.Merges() {
		err = part.Merge(ctx, b)
	} else {
		err = part.Gather(ctx, part.Is().Every(), b)
	}
	if err != nil {
		return nil, err
	}
	n, err := part.SizeOfOffsets(ctx)
	if err != nil {
		return nil, err
	}
	offsets := make([]byte, n)
	if err := part.Offsets(ctx, offsets); err != nil {
		return nil, err
	}
	at := func(i int64) uint64 { return binary.LittleEndian.Uint64(offsets[8*i:]) }
	for i := range n/8 - 1 {
		records = append(records, string(b[at(i):at(i+1)]))
	}
	if at(0) != 0 || at(n/8-1) != uint64(size) {
		return nil, fmt.Errorf("records are from byte %d to %d of %d", at(0), at(n/8-1), size)
	}
	return records, nil
}
