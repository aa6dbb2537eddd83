package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
)

// full has some of everything.
func full(t testing.TB) *cluster {
	c := founded(t, 4)
	c.do(&state.Token{Hash: index(2), Expires: 1 << 61, Uses: 2})
	c.do(&state.DropToken{Hash: index(2)})
	c.do(&state.Remove{ID: id(4)})
	c.do(&state.Drain{ID: id(3), Drained: true})
	c.do(&state.Begin{ID: id(1), Addr: "h:3", Life: 77})
	c.do(&state.Health{ID: id(3)})
	c.do(&state.PutDataset{Name: "e", Registration: json.RawMessage(`"<&> "`), Index: index(2), IndexBytes: 3})
	c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 3, Rank: 1, Node: id(1)})
	c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 3, Rank: 1, Node: id(2)})
	for epoch := range 3 {
		c.do(&state.Settle{View: view(epoch, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}, {Node: id(2), Count: 1}}})
	}
	c.do(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 100_000, Policy: "flow", Seed: 1 << 60})
	c.do(&state.OpenQueue{View: view(2, 2), Generation: 1, Units: 0, Policy: "probability"})
	for n := range int64(3) {
		c.do(&state.TakeUnit{View: view(1, 2), Reader: "a<", Node: id(1), Finish: true, Take: 40_000 * n, Nonce: uint64(n)})
	}
	c.do(&state.LeaveQueue{View: view(1, 2), Reader: "b"})
	for n := range state.MaxReturns {
		c.giveBack(view(1, 2), fmt.Sprint("back", n), 9)
	}
	c.giveBack(view(1, 2), "x", 10)
	c.do(&state.Setting{Key: "k", Value: "<v>\u2028"})
	return c
}

func TestSnapshotRestores(t *testing.T) {
	c := full(t)
	read := through(t, c.m)
	if read.Sizes() != c.m.Sizes() || snapshot(t, read).Applied() != c.index {
		t.Fatalf("got %+v, want %+v", read.Sizes(), c.m.Sizes())
	}
	p, _ := read.SettledPlan(view(2, 2))
	w, _ := read.Reader(view(1, 2), "a<")
	if fmt.Sprint(p.Nodes.Nodes()) != fmt.Sprint([]string{id(1), id(2)}) || w.Unit != 80_000 || w.Units != 2 {
		t.Fatalf("%+v, %+v", p, w)
	}
	c.m = read // which goes on where the other was
	last := &state.TakeUnit{View: view(1, 2), Reader: "a<", Node: id(1), Finish: true, Take: 80_000, Nonce: 2}
	if r := c.do(last); r.Taken().Unit != 80_000 || r.Taken().Finished != 40_000 {
		t.Fatalf("a step sent again: %s", text(r))
	}
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(2), Node: nodeOf(9)})
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(4)})
}

// The machine of a daemon is restored in place: those that follow it notice.
func TestRestoreInPlace(t *testing.T) {
	c, m := full(t), state.New()
	data := written(t, snapshot(t, c.m))
	if _, err := m.Apply(1, []byte("\xff\xff")); err == nil {
		t.Fatal("applied nonsense")
	}
	if _, err := m.Snapshot(); !errors.Is(err, meta.ErrUnavailable) {
		t.Fatalf("a snapshot that misses a command: %v", err)
	}
	changed := m.Changed()
	if err := m.Restore(bytes.NewReader(data[1:])); !errors.Is(err, meta.ErrCorrupt) || m.Err() == nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Fatal("changed by half a snapshot")
	default:
	}
	if err := m.Restore(bytes.NewReader(data)); err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	<-changed
	if m.Hash() != c.m.Hash() {
		t.Fatal("restored something else")
	}
}

func TestSnapshotDamage(t *testing.T) {
	data := written(t, snapshot(t, full(t).m))
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= byte(1 << (i % 8))
		if _, err := state.Read(bytes.NewReader(damaged)); !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("byte %d of %d flipped: %v", i, len(data), err)
		}
	}
	for i := 0; i < len(data); i += 7 {
		if _, err := state.Read(bytes.NewReader(data[:i])); !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := state.Read(io.MultiReader(bytes.NewReader(data), strings.NewReader("x"))); !errors.Is(err, meta.ErrCorrupt) {
		t.Fatalf("a byte too many: %v", err)
	}
	broken := errors.New("disk on fire")
	_, err := state.Read(io.MultiReader(bytes.NewReader(data[:100]), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || errors.Is(err, meta.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if _, err := state.Read(iotest.OneByteReader(bytes.NewReader(data))); err != nil {
		t.Fatal(err)
	}
	length := len(data) - 16
	longer := binary.LittleEndian.AppendUint64(bytes.Clone(data[:length]), uint64(length)+1)
	longer = binary.LittleEndian.AppendUint64(longer, xxhash.Sum64(longer))
	if _, err := state.Read(bytes.NewReader(longer)); !errors.Is(err, meta.ErrCorrupt) {
		t.Fatalf("another length, with a good sum: %v", err)
	}
	later := sealed(4, frames(data))
	if _, err := state.Read(bytes.NewReader(later)); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade") {
		t.Fatalf("a later version: %v", err)
	}
}

func TestSnapshotWriteFails(t *testing.T) {
	s := snapshot(t, full(t).m)
	broken := errors.New("disk full")
	r, w := io.Pipe()
	r.CloseWithError(broken)
	if _, err := s.WriteTo(w); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

type frame struct {
	section byte
	payload []byte
}

// frames takes a good snapshot apart.
func frames(data []byte) (all []frame) {
	for data = data[12:]; data[0] != 0; {
		n := binary.LittleEndian.Uint32(data[1:])
		all = append(all, frame{data[0], data[5 : 5+n]})
		data = data[5+n:]
	}
	return all
}

// sealed is a snapshot of those frames, with good sums.
func sealed(version uint32, all []frame) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("rankfsst"), version)
	for _, f := range all {
		b = binary.LittleEndian.AppendUint32(append(b, f.section), uint32(len(f.payload)))
		b = append(b, f.payload...)
	}
	length := uint64(len(b))
	b = binary.LittleEndian.AppendUint32(append(b, 0), 8)
	b = binary.LittleEndian.AppendUint64(b, length)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// Snapshots with good sums that no machine has written.
func TestForgedSnapshot(t *testing.T) {
	good := frames(written(t, snapshot(t, full(t).m)))
	if _, err := state.Read(bytes.NewReader(sealed(2, good))); err != nil {
		t.Fatal(err)
	}
	// Each row changes the text of the first frame of a section that has it.
	tests := []struct {
		name     string
		section  byte
		from, to string
	}{
		{"a negative time", 'i', `"Now":`, `"Now":-`},
		{"an endless sequence", 'i', `"Sequence":`, `"Sequence":1844674407370955161`},
		{"no sequence", 'i', `"Sequence":6`, `"Sequence":1`},
		{"an unknown field", 'i', `{`, `{"Color":1,`},
		{"a plan evicted that is yet to come", 'i', `{`, `{"Evicted":7,`},
		{"an old generation", 'i', `"Generation":2`, `"Generation":1`},
		{"a token overused", 't', `"Used":`, `"Used":9999`},
		{"a token used backwards", 't', `"Used":`, `"Used":-`},
		{"an expired token", 't', `"Expires":4`, `"Expires":0,"At":4`},
		{"a token for none", 't', `"Uses":4096`, `"Uses":0`},
		{"a node without id", 'n', id(1), ""},
		{"a node that was removed", 'n', id(1), id(4)},
		{"a node that comes twice", 'n', id(1), id(2)},
		{"a node with a wish before there were any", 'n', `"ID":"`, `"Wish":"` + id(2) + `","Wished":1,"ID":"`},
		{"a node with another name before there were any", 'n', `"ID":"`, `"Called":"other","ID":"`},
		{"a node that wished for nothing", 'n', `"ID":"`, `"Wished":1,"ID":"`},
		{"a removed node without id", 'r', id(4), ""},
		{"a dataset from the future", 'd', `"Generation":1`, `"Generation":3`},
		{"a dataset before itself", 'd', `"Before":0`, `"Before":1`},
		{"a dataset made of a stage that is not there", 'd', `"Registered":`, `"Stage":1000,"Registered":`},
		{"a dataset made of itself", 'd', `"Registered":`, `"Bases":["d"],"Registered":`},
		{"a dataset without name", 'd', `"Name":"d"`, `"Name":""`},
		{"a registration that is no JSON", 'd', `"Record":"`, `"Record":"AAAA`},
		{"a dataset twice", 'd', `"Name":"d"`, `"Name":"e"`},
		{"a job of no dataset", 'j', `"d"`, `"x"`},
		{"a job without ranks", 'j', `"Ranks":3`, `"Ranks":0`},
		{"a job of more ranks than claims", 'j', `"Ranks":3`, `"Ranks":4`},
		{"a job of endless ranks", 'j', `"Ranks":3`, `"Ranks":1152921504606846976`},
		{"a job without number", 'j', `"Sequence":1`, `"Sequence":0`},
		{"a job with the number of a plan", 'j', `"Sequence":1`, `"Sequence":2`},
		{"nodes of a plan without number", 'm', "*1", ""},
		{"nodes of a plan with number 0", 'm', "*1", "*0"},
		{"nodes of a plan of other ranks", 'm', "*1", "*2"},
		{"a plan of a later generation", 'p', `"Generation":1`, `"Generation":2`},
		{"a plan with another index", 'p', index(1), index(2)},
		{"a plan with nodes of none", 'p', `"Map":0`, `"Map":1`},
		{"a plan with nodes before the first", 'p', `"Map":0`, `"Map":-1`},
		{"a plan with nodes of its own", 'p', `"Map":0`, `"Map":0,"Nodes":"` + id(1) + `*2"`},
		{"a plan of half a view", 'p', `ranks=2,`, ``},
		{"a plan of more ranks", 'p', `ranks=2,`, `ranks=3,`},
		{"a plan out of order", 'p', `"Sequence":2`, `"Sequence":5`},
		{"a plan twice", 'p', `epoch=0`, `epoch=1`},
		{"a queue of endless units", 'q', `"Units":100000`, `"Units":1000000000`},
		{"a queue of fewer units than done", 'q', `"Units":100000`, `"Units":1000`},
		{"a queue whose last unit is not the last", 'q', `"Units":100000`, `"Units":40000`},
		{"a queue that counts", 'q', `"Done":0`, `"Done":1`},
		{"a queue of a later generation", 'q', `"Generation":1`, `"Generation":2`},
		{"a queue with the number of a plan", 'q', `"Sequence":5`, `"Sequence":2`},
		{"a page that is not there", 'u', "\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\x00\x00\x00\x00\x00\x00\x00"},
		{"a short page", 'u', "\x00\x00\x00\x00\x00\x00\x00\x00", ""},
		{"a unit past the last", 'u', strings.Repeat("\x00", 8) + "\x01" + strings.Repeat("\x00", 215),
			"\x03" + strings.Repeat("\x00", 7+212) + "\x01" + strings.Repeat("\x00", 3)},
		{"a suspect that is not there", 'b', `"Unit":9`, `"Unit":100000`},
		{"a suspect before the first unit", 'b', `"Unit":9`, `"Unit":-1`},
		{"a suspect that is done", 'b', `"Unit":9`, `"Unit":0`},
		{"a suspect twice", 'b', `"Unit":9`, `"Unit":10`},
		{"a suspect returned by one twice", 'b', `back0`, `back1`},
		{"a suspect returned by no reader", 'b', `"x"`, `""`},
		{"a suspect returned nowhere", 'b', `"Node":"` + id(1), `"Node":"`},
		{"a suspect returned by no rank", 'b', `"Rank":0`, `"Rank":1048576`},
		{"a suspect returned for no cause", 'b', `closed`, `clos`},
		{"a suspect returned too often", 'b', `"By":[`, `"By":[{"Worker":"y","Node":"` + id(1) + `","Rank":0,"At":1,"Cause":"down"},`},
		{"a queue that counts suspects", 'q', `"Done":0`, `"Aside":1,"Done":0`},
		{"a reader without id", 'w', `"ID":"a\u003c"`, `"ID":""`},
		{"a reader on no node", 'w', id(1), ""},
		{"a reader on a node that is down", 'w', id(1), id(3)},
		{"a reader on a node that was removed", 'w', id(1), id(4)},
		{"a reader with a unit that is not there", 'w', `"Unit":80000`, `"Unit":100000`},
		{"a reader with unit -2", 'w', `"Unit":80000`, `"Unit":-2`},
		{"a reader that has left with a unit", 'w', `"Unit":80000`, `"Unit":80000,"Left":true`},
		{"a reader twice", 'w', `a\u003c`, `b`},
		{"a setting of nothing", 's', `"Key":"k"`, `"Key":""`},
		{"a setting to nothing", 's', `"Value":"\u003cv\u003e\u2028"`, `"Value":""`},
		{"an index that is no number", 'a', "", "x"},
		{"something after a value", 's', "", " x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := forge(t, good, tt.section, tt.from, tt.to); !errors.Is(err, meta.ErrCorrupt) {
				t.Fatalf("got %v", err)
			}
		})
	}
	for _, f := range good {
		t.Run(fmt.Sprintf("section %q", f.section), func(t *testing.T) {
			var without, twice []frame
			for _, other := range good {
				if other.section != f.section {
					without = append(without, other)
				}
				twice = append(twice, other)
				if other.section == f.section {
					twice = append(twice, other)
				}
			}
			_, err := state.Read(bytes.NewReader(sealed(2, twice)))
			if !errors.Is(err, meta.ErrCorrupt) && f.section != 'm' { // nodes that no plan has are no harm
				t.Errorf("twice: %v", err)
			}
			_, err = state.Read(bytes.NewReader(sealed(2, without)))
			if refers := strings.IndexByte("aindjcmq", f.section) >= 0; refers != errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("without: %v", err)
			}
		})
	}
	for _, s := range "\x01xZ" {
		all := append([]frame{{byte(s), []byte("{}")}}, good...)
		if _, err := state.Read(bytes.NewReader(sealed(2, all))); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("section %q: %v", s, err)
		}
	}
}

// forge reads a snapshot in which the first frame of a section that has a text
// has another instead, or at its end.
func forge(t *testing.T, good []frame, section byte, from, to string) error {
	t.Helper()
	all := append([]frame(nil), good...)
	for i, f := range all {
		if f.section != section || !bytes.Contains(f.payload, []byte(from)) {
			continue
		}
		changed := bytes.Replace(f.payload, []byte(from), []byte(to), 1)
		if from == "" {
			changed = append(bytes.Clone(f.payload), to...)
		}
		all[i].payload = changed
		_, err := state.Read(bytes.NewReader(sealed(2, all)))
		return err
	}
	t.Fatalf("no frame of section %q has %q", section, from)
	return nil
}

// Snapshots, reads and commands at the same time: a snapshot is written as it
// was taken, however much is applied meanwhile.
func TestSnapshotBesideApply(t *testing.T) {
	c := full(t)
	s := snapshot(t, c.m)
	before := written(t, s)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 50 {
				if !bytes.Equal(written(t, s), before) {
					t.Error("a snapshot has changed")
				}
			}
		})
	}
	wg.Go(func() {
		for range 200 {
			c.m.Sizes()
			c.m.QueueState(view(1, 2))
			c.m.Claims("d", 3)
			c.m.Changed()
			c.m.SettledPlan(view(1, 2))
		}
	})
	for n := range 500 {
		c.do(&state.TakeUnit{View: view(1, 2), Reader: "a<", Node: id(1), Finish: true, Take: int64(100 * n), Nonce: uint64(n + 10)})
		c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 3, Rank: 1, Node: id(1 + n%2)})
		c.do(&state.Settle{View: view(n+10, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 2}}})
		if n%100 == 0 {
			snapshot(t, c.m)
		}
	}
	wg.Wait()
}
