package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	"rankfs/meta/state"
)

// seeds are one command of each kind.
func seeds() []state.Command {
	return []state.Command{
		&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}},
		&state.Token{Hash: index(3), Expires: 1 << 60, Uses: 2},
		&state.DropToken{Hash: index(1)},
		&state.Admit{TokenHash: index(1), Node: nodeOf(9)},
		&state.Move{ID: id(1), Addr: "h:2"},
		&state.Drain{ID: id(1), Drained: true},
		&state.Remove{ID: id(1)},
		&state.Health{ID: id(1), Life: 77},
		signedBy(id(2), &state.Begin{ID: id(2), Addr: "h:4", Life: 78, Called: "other"}),
		&state.PutDataset{Name: "d", Registration: json.RawMessage(`{"b":[1]}`), Index: index(1), IndexBytes: 5, Generation: 1},
		&state.RemoveDataset{Name: "d", Generation: 1},
		&state.Claim{Dataset: "d", Generation: 1, Ranks: 3, Rank: 2, Node: id(1)},
		&state.Settle{View: view(7, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1}, {Node: id(2), Count: 1}}},
		&state.Unsettle{View: view(1, 2)},
		&state.OpenQueue{View: view(7, 2), Generation: 1, Units: 10, Policy: "flow"},
		&state.TakeUnit{View: view(1, 2), Reader: "a<", Node: id(1), Finish: true, Take: 7, Nonce: 99},
		&state.LeaveQueue{View: view(1, 2), Reader: "a<"},
		&state.ResetQueue{View: view(1, 2)},
		&state.DropQueue{View: view(1, 2)},
		&state.Setting{Key: "k", Value: "v"},
		byLeader(id(1), &state.Upgrade{To: state.Version, Nodes: []string{id(1), id(2), id(3)}}),
		signedBy(id(1), &state.Promote{ID: id(2), Voters: state.Voters{Voters: []string{id(1), id(2), id(3)}}}),
		signedBy(id(1), &state.MakeJob{Node: id(1), Name: "j", UID: 7, Nonce: 1}),
		signedBy(id(1), &state.DropJob{Name: "j", Number: 1}),
		signedBy(id(1), &state.UseJob{Node: id(1), Name: "j", Open: true, Hold: true}),
		signedBy(id(1), &state.MakeStage{Job: "j", Name: "s", Nonce: 2}),
		signedBy(id(1), &state.DropStage{StageName: stageName, Empty: true}),
		signedBy(id(1), &state.SpecifyStage{StageName: stageName, Spec: "maps=2 parts=3"}),
		signedBy(id(1), &state.CommitMaps{Maps: state.MapsByStage{{Stage: stageNumber, Maps: state.Commits{{Writer: id(1), Nodes: []string{id(1)}}}}}}),
		signedBy(id(1), &state.SealStage{StageName: stageName}),
		signedBy(id(1), &state.ResetStage{StageName: stageName}),
		signedBy(id(1), &state.KeepCopy{StageName: stageName, Node: id(1), Has: true}),
		signedBy(id(1), &state.DropMap{StageName: stageName, Sum: 5}),
		signedBy(id(1), &state.PutBlobs{StageName: blobs, Node: id(1), Dirs: []state.Blob{{Name: "d", Number: 4, Dir: true}},
			Maps: state.Commits{{Map: 1 << 40, Writer: id(1), Nodes: []string{id(1)}, Name: "d/k"}}}),
		signedBy(id(1), &state.DropBlob{StageName: blobs, Blob: state.Blob{Name: "d/k", Number: 1 << 40}}),
		signedBy(id(1), &state.OfferPool{ID: id(1), Bytes: 1 << 30, Full: true}),
		signedBy(id(1), &state.SetQuota{Name: "j", Number: 1, Quota: 7}),
		signedBy(id(1), &state.BeginStage{StageName: stageName}),
		signedBy(id(1), &state.ReserveQuota{Node: id(1), Name: "j", Number: 1, Asked: 5, Freed: 2}),
	}
}

// Whatever is in a log, machines do the same with it, and what they come to
// can be written and read.
func FuzzApply(f *testing.F) {
	base := written(f, snapshot(f, full(f).m))
	for i, c := range seeds() {
		state.Stamp(c, 1e12)
		data, err := state.Encode(c)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := state.Decode(data); err != nil {
			f.Fatal(err)
		}
		if data[1] != byte(i+1) {
			f.Fatalf("%T is of kind %d", c, data[1])
		}
		f.Add(data)
	}
	f.Add([]byte("\x03\x10{\"Take\":-1}"))
	f.Add([]byte("\x03\x0dnull"))
	f.Fuzz(func(t *testing.T, data []byte) {
		one, err := state.Read(bytes.NewReader(base))
		if err != nil {
			t.Fatal(err)
		}
		other := through(t, one)
		r, err := one.Apply(1000, data)
		r2, err2 := other.Apply(1000, data)
		if text(r) != text(r2) || fmt.Sprint(err) != fmt.Sprint(err2) || one.Hash() != other.Hash() {
			t.Fatalf("%s, %v; the other %s, %v", text(r), err, text(r2), err2)
		}
		if _, decoded := state.Decode(data); (decoded != nil) != (one.Err() != nil) {
			t.Fatalf("decode: %v, poison: %v", decoded, one.Err())
		}
		if one.Err() != nil {
			return
		}
		hash := one.Hash()
		if again, err2 := one.Apply(1001, data); text(again) != text(r) || (err2 == nil) != (err == nil) || one.Hash() != hash {
			t.Fatalf("twice: %s, %v, then %s, %v", text(r), err, text(again), err2)
		}
		through(t, one)
	})
}

// A snapshot that is read is one that can be written and worked with. Bytes
// are tried as they are, and as frames between good ends.
func FuzzRead(f *testing.F) {
	good := written(f, snapshot(f, full(f).m))
	f.Add(good)
	f.Add(good[12 : len(good)-21])
	f.Add(written(f, snapshot(f, state.New())))
	for i := range 3 {
		f.Add(bytes.Join(pack(frames(good)[i:]), nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		work(t, data)
		work(t, sealed(2, unpack(data)))
		work(t, sealed(3, unpack(data)))
	})
}

func pack(all []frame) (b [][]byte) {
	for _, f := range all {
		head := binary.LittleEndian.AppendUint32([]byte{f.section}, uint32(len(f.payload)))
		b = append(b, head, f.payload)
	}
	return b
}

// unpack makes frames of any bytes.
func unpack(data []byte) (all []frame) {
	for len(data) >= 5 {
		n := min(int(binary.LittleEndian.Uint32(data[1:])), len(data)-5)
		if data[0] != 0 {
			all = append(all, frame{data[0], data[5 : 5+n]})
		}
		data = data[5+n:]
	}
	return all
}

func work(t *testing.T, data []byte) {
	m, err := state.Read(bytes.NewReader(data))
	if err != nil {
		return
	}
	through(t, m)
	for i, c := range seeds() {
		data, err := state.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(m.Summary().Applied+1, data)
		if m.Err() != nil {
			t.Fatalf("command %d: %v", i, m.Err())
		}
	}
	m.Queues()
	m.Datasets()
	through(t, m)
}
