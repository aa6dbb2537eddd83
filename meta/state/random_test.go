package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/state"
)

// anyCommand draws from pools so small that commands meet.
func anyCommand(t *rapid.T, m *model) state.Command {
	one := func(label string, most int) int { return rapid.IntRange(1, most).Draw(t, label) }
	node := func() string { return id(one("node", 4)) }
	hash := func() string { return index(one("token", 2)) }
	dataset := func() string { return rapid.SampledFrom([]string{"d", "e"}).Draw(t, "dataset") }
	generation := func(name string) uint64 {
		if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
			return rapid.Uint64Range(0, m.latest+1).Draw(t, "generation")
		}
		return m.datasets[name].Generation
	}
	ranks := func() uint64 { return uint64(2 * one("ranks", 2)) }
	view := func() string {
		return fmt.Sprintf("%s@epoch=%d,ranks=%d,seed=0,order=full,step=1024,tail=keep,assign=local", dataset(), one("epoch", 2), ranks())
	}
	reader := func() string { return fmt.Sprint("w", one("reader", 4)) }
	flag := func() bool { return rapid.Bool().Draw(t, "flag") }
	step := func() state.Command {
		n := one("reader", 5)
		v := view()
		if len(m.queues) > 0 && flag() {
			v = rapid.SampledFrom(sortedKeys(m.queues)).Draw(t, "queue")
		}
		return &state.TakeUnit{
			View: v, Reader: fmt.Sprint("w", n), Node: id(1 + n%3), Rank: uint64(n % 2), Finish: flag(),
			Take: rapid.Int64Range(-1, 4).Draw(t, "unit"), Nonce: rapid.Uint64Range(0, 5).Draw(t, "nonce"),
		}
	}
	switch k := one("kind", 30); k {
	case 1:
		return &state.Found{Cluster: state.Cluster{ID: fmt.Sprint(one("id", 2)), CA: "ca"}}
	case 2:
		return &state.Token{Hash: hash(), Expires: m.now + int64(one("life", 3))*100, Uses: one("uses", 3)}
	case 3:
		return &state.DropToken{Hash: hash()}
	case 4, 5, 6:
		n := nodeOf(one("node", 4))
		if one("other key", 5) == 1 {
			n.Key = "another"
		}
		return &state.Admit{TokenHash: hash(), Node: n}
	case 7, 16:
		return &state.Begin{ID: node(), Addr: fmt.Sprint("h:", one("port", 3)), Life: uint64(one("life", 2))}
	case 8:
		return &state.Move{ID: node(), Addr: fmt.Sprint("h:", one("port", 3))}
	case 9:
		return &state.Drain{ID: node(), Drained: flag()}
	case 10:
		if one("remove", 4) == 1 {
			return &state.Remove{ID: node()}
		}
		return &state.Health{ID: node(), Life: uint64(one("life", 2)), Up: true}
	case 11, 12:
		n := node()
		return &state.Health{ID: n, Life: m.nodes[n].Life, Up: flag()}
	case 13, 14:
		name := dataset()
		registration := json.RawMessage(fmt.Sprintf(`{"r":%d}`, one("registration", 2)))
		return &state.PutDataset{Name: name, Registration: registration, Index: index(one("index", 2)), Generation: generation(name)}
	case 15:
		name := dataset()
		return &state.RemoveDataset{Name: name, Generation: generation(name)}
	case 17, 18:
		name, ranks := dataset(), ranks()
		return &state.Claim{
			Dataset: name, Generation: generation(name), Ranks: ranks,
			Rank: rapid.Uint64Range(0, ranks-1).Draw(t, "rank"), Node: node(),
		}
	case 19, 20:
		v := view()
		parsed, _ := meta.View{}.With(v[len(datasetOf(v))+1:])
		nodes := state.RunsOf(rapid.SliceOfN(rapid.Custom(func(*rapid.T) string { return node() }), int(parsed.Ranks), int(parsed.Ranks)).Draw(t, "nodes"))
		return &state.Settle{View: v, Generation: generation(datasetOf(v)), Nodes: nodes}
	case 21:
		return &state.Unsettle{View: view()}
	case 22, 23:
		v := view()
		return &state.OpenQueue{View: v, Generation: generation(datasetOf(v)), Units: uint64(one("units", 5)), Policy: "flow"}
	case 24:
		return &state.LeaveQueue{View: view(), Reader: reader()}
	case 25:
		return &state.ResetQueue{View: view(), Resets: rapid.Uint64Range(0, 2).Draw(t, "run"), Aside: flag()}
	case 26:
		if one("drop", 4) == 1 {
			return &state.DropQueue{View: view()}
		}
		return &state.Setting{Key: fmt.Sprint("k", one("key", 2)), Value: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "value")}
	}
	return step()
}

// Random commands: the machine does what the model does; each command twice
// changes nothing; a second machine, which goes through snapshots, is equal;
// a snapshot stays what it is; and what must always hold, holds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, one, other := newModel(), state.New(), state.New()
		var applied, generation uint64
		begin := func(c state.Command) { step(t, m, one, other, &applied, c, m.now+1) }
		if rapid.Bool().Draw(t, "founded") {
			begin(&state.Found{Cluster: state.Cluster{ID: "1", CA: "ca"}})
			begin(&state.Token{Hash: index(1), Expires: 1 << 40, Uses: 3})
			for n := range 3 {
				begin(&state.Admit{TokenHash: index(1), Node: nodeOf(n + 1)})
			}
			begin(&state.PutDataset{Name: "d", Registration: json.RawMessage("1"), Index: index(1)})
			begin(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 5, Policy: "flow"})
			for n := range rapid.IntRange(0, 4).Draw(t, "returns") {
				begin(&state.TakeUnit{View: view(1, 2), Reader: fmt.Sprint("v", n), Node: id(1), Take: 1, Nonce: 1})
				begin(&state.LeaveQueue{View: view(1, 2), Reader: fmt.Sprint("v", n)})
			}
		}
		var kept *state.Snapshot
		var bytesThen []byte
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			c := anyCommand(t, m)
			at := m.now + rapid.Int64Range(-50, 50).Draw(t, "passes")
			step(t, m, one, other, &applied, c, at)
			if m.latest < generation {
				t.Fatal("generations go back")
			}
			generation = m.latest
			if rapid.IntRange(0, 9).Draw(t, "snapshot") == 0 {
				other = through(t, other)
			}
			if rapid.IntRange(0, 9).Draw(t, "keep") == 0 {
				kept = snapshot(t, one)
				bytesThen = written(t, kept)
			}
		}
		if kept != nil && !bytes.Equal(written(t, kept), bytesThen) {
			t.Fatal("a snapshot has changed")
		}
	})
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// through is the machine that a snapshot of m is read as.
func through(t fataler, m *state.Machine) *state.Machine {
	t.Helper()
	data := written(t, snapshot(t, m))
	read, err := state.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, written(t, snapshot(t, read))) || read.Hash() != m.Hash() {
		t.Fatal("a snapshot of what was read from a snapshot differs from it")
	}
	return read
}

func snapshot(t fataler, m *state.Machine) *state.Snapshot {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func written(t fataler, s *state.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := s.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", b.Len(), n, err)
	}
	return b.Bytes()
}

func step(t *rapid.T, m *model, one, other *state.Machine, applied *uint64, c state.Command, at int64) {
	t.Helper()
	state.Stamp(c, at)
	data, err := state.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := m.apply(c, at)
	*applied++
	got, err := one.Apply(*applied, data)
	if !errors.Is(err, wantErr) || text(got) != text(want) && wantErr == nil {
		t.Fatalf("%T%+v\ngot  %s, %v\nwant %s, %v", c, c, text(got), err, text(want), wantErr)
	}
	if err := m.differ(one); err != nil {
		t.Fatalf("after %T%+v: %v", c, c, err)
	}
	mustHold(t, m, one)
	hash := one.Hash()
	if r, otherErr := other.Apply(*applied, data); text(r) != text(got) || fmt.Sprint(otherErr) != fmt.Sprint(err) || other.Hash() != hash {
		t.Fatalf("after %T%+v another machine is another: %v, %v", c, c, err, otherErr)
	}
	*applied++
	for _, m := range []*state.Machine{one, other} {
		if r, again := m.Apply(*applied, data); text(r) != text(got) || !errors.Is(again, wantErr) || m.Hash() != hash {
			t.Fatalf("%T%+v twice: first %s, %v, then %s, %v", c, c, text(got), err, text(r), again)
		}
	}
}

func text(r any) string {
	b, _ := json.Marshal(r)
	return string(b)
}

// mustHold are the invariants of a state, as far as they can be seen.
func mustHold(t *rapid.T, model *model, m *state.Machine) {
	t.Helper()
	for _, info := range m.Queues() {
		q, _ := m.QueueState(info.View)
		holders := make(map[int64]int)
		for _, w := range q.Readers {
			if w.Unit < 0 {
				continue
			}
			n, ok := m.Node(w.Node)
			if holders[w.Unit]++; holders[w.Unit] > 2 || !ok || !n.Up || w.Left {
				t.Fatalf("reader %+v, node %+v", w, n)
			}
		}
		if d, ok := m.Dataset(datasetOf(q.View)); !ok || d.Generation != q.Generation {
			t.Fatalf("queue %+v of dataset %+v", q, d)
		}
	}
	for hash, used := range model.uses {
		if token, ok := model.tokens[hash]; ok && used > token.Uses {
			t.Fatalf("token %+v was used %d times", token, used)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
