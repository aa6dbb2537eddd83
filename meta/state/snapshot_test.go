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

// current is full after its upgrade, with some of each thing that begins with this version.
func current(t testing.TB) *cluster {
	c := full(t)
	c.do(upgrade(id(1), id(1), id(2), id(3)))
	do := func(command state.Command) { c.do(signedBy(id(1), command)) }
	do(&state.Token{Hash: index(5), Expires: 1 << 61, Uses: 3, Role: state.Member})
	do(&state.Begin{ID: id(1), Addr: "h:3", Life: 78, Called: "other"})
	do(&state.OfferPool{ID: id(1), Bytes: 1 << 30})
	do(&state.MakeJob{Node: id(1), Name: "j", UID: 7, Nonce: 1})
	j, _ := c.m.PoolJob("j")
	do(&state.UseJob{Node: id(1), Name: "j", Open: true})
	do(&state.SetQuota{Name: "j", Quota: 1 << 30})
	do(&state.ReserveQuota{Node: id(1), Name: "j", Number: j.Number, Asked: 100})
	do(&state.MakeStage{Job: "j", Name: "s", Nonce: 2})
	do(&state.SpecifyStage{StageName: stageName, Spec: "maps=2 parts=3"})
	g, _ := c.m.Stage(j.Number, "s")
	one := state.Commit{Size: 10, Sum: 5, Writer: id(1), Nodes: []string{id(1)}}
	do(&state.CommitMaps{Maps: state.MapsByStage{{Stage: g.Number, Maps: state.Commits{one}}}})
	do(&state.MakeStage{Job: "j", Name: blobs.Name, Nonce: 3})
	do(&state.PutBlobs{StageName: blobs, Node: id(1), Dirs: []state.Blob{{Name: "d", Number: 4, Dir: true}},
		Maps: state.Commits{{Map: 1 << 40, Writer: id(1), Nodes: []string{id(1)}, Name: "d/k"}}})
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
	later := sealed(binary.LittleEndian.Uint32(data[8:])+state.Version-state.Oldest+1, frames(data))
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

// A forgery changes a text of the first frame of a section that has it.
type forgery struct {
	name     string
	section  byte
	from, to string
}

func inHeader(version int) string { return fmt.Sprintf(`"Version":%d,`, version) }

// Snapshots with good sums that no machine has written, of a cluster of this version.
func TestForgedSnapshot(t *testing.T) {
	good := written(t, snapshot(t, current(t).m))
	through(t, current(t).m)
	for _, tt := range []forgery{
		{"a header of the version before", 'i', inHeader(state.Version), inHeader(state.Version - 1)},
		{"a header of the next version", 'i', inHeader(state.Version), inHeader(state.Version + 1)},
		{"a token for no role", 't', `"Role":"member"`, `"Role":"guest"`},
		{"a node of no role", 'n', `"Role":"operator"`, `"Role":""`},
		{"a node of another role", 'n', `"Role":"operator"`, `"Role":"guest"`},
		{"a node that is called nothing that can be", 'n', `"Called":"other"`, `"Called":"o t"`},
		{"a node that owes the pool", 'n', `"Pool":1`, `"Pool":-1`},
		{"a node that wishes for one that cannot be", 'n', `"ID":"`, `"Wish":"x","Wished":1,"ID":"`},
		{"a job of no name", 'J', `"Name":"j"`, `"Name":""`},
		{"a job with the number of a plan", 'J', `"Number":7`, `"Number":2`},
		{"a job of no life", 'J', `"Life":8`, `"Life":-8`},
		{"a job of less than no quota", 'J', `"Quota":1`, `"Quota":-1`},
		{"a job used before there was time", 'J', `"Used":4`, `"Used":-4`},
		{"a job made before there was time", 'J', `"Made":4`, `"Made":-4`},
		{"a job that a removed node uses", 'J', `"Users":{"` + id(1), `"Users":{"` + id(4)},
		{"a job with room for a removed node", 'J', `"Reserved":{"` + id(1), `"Reserved":{"` + id(4)},
		{"a job with more room than was asked for", 'J', `"Bytes":90`, `"Bytes":101`},
		{"a stage of no job", 'G', `"Job":7`, `"Job":8`},
		{"a stage of no name", 'G', `"Name":"s"`, `"Name":""`},
		{"a stage twice", 'G', `"Name":"s"`, `"Name":"blob"`},
		{"a stage with the number of its job", 'G', `"Number":8`, `"Number":7`},
		{"a stage with maps and without a spec", 'G', `"Spec":"maps=2 parts=3 copies=2"`, `"Spec":""`},
		{"a stage of blobs that is sealed", 'G', `"Spec":"parts=1 copies=2"`, `"Spec":"parts=1 copies=2","Sealed":true`},
		{"directories of no stage", 'D', `"Stage":9`, `"Stage":8`},
		{"a directory with no name", 'D', `"Name":"d"`, `"Name":""`},
		{"a directory that is none", 'D', `"Dir":true`, `"Dir":false`},
		{"a directory in none", 'D', `"Name":"d"`, `"Name":"e/d"`},
		{"a blob in no directory", 'D', `"Name":"d"`, `"Name":"e"`},
		{"maps of no stage", 'M', `"Stage":8`, `"Stage":7`},
		{"no maps", 'M', `"Maps":"AQEAAAAAAAAAAAAKBQAAAAAAAAAAAQAA"`, `"Maps":""`},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.isRefused(t, good) })
	}
}

// Snapshots with good sums that no machine has written, of a cluster that has not gone over.
func TestForgedSnapshotOfTheReleaseBefore(t *testing.T) {
	data := written(t, snapshot(t, full(t).m))
	good := frames(data)
	if _, err := state.Read(bytes.NewReader(sealed(2, good))); err != nil {
		t.Fatal(err)
	}
	tests := []forgery{
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
		t.Run(tt.name, func(t *testing.T) { tt.isRefused(t, data) })
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

// isRefused reads a good snapshot in which the first frame of the section that has the one text
// has the other instead, or at its end.
func (f forgery) isRefused(t *testing.T, good []byte) {
	t.Helper()
	version, all := binary.LittleEndian.Uint32(good[8:]), frames(good)
	for i, has := range all {
		if has.section != f.section || !bytes.Contains(has.payload, []byte(f.from)) {
			continue
		}
		changed := bytes.Replace(has.payload, []byte(f.from), []byte(f.to), 1)
		if f.from == "" {
			changed = append(bytes.Clone(has.payload), f.to...)
		}
		all[i].payload = changed
		if _, err := state.Read(bytes.NewReader(sealed(version, all))); !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("got %v", err)
		}
		return
	}
	t.Fatalf("no frame of section %q has %q", f.section, f.from)
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
