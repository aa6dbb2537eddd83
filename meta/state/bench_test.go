package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"rankfs/meta/state"
)

// BenchmarkStep is a queue of 1,024 readers, each finishing a unit and taking
// another; decode and apply, as of a log.
func BenchmarkStep(b *testing.B) {
	const readers = 1024
	c := founded(b, 16)
	c.do(&state.OpenQueue{View: view(1, readers), Generation: 1, Units: state.MaxUnits, Policy: "flow"})
	commands := make([][]byte, 0, 1<<16)
	next := func(n int) []byte {
		w := n % readers
		step := &state.TakeUnit{
			View: view(1, readers), Reader: fmt.Sprintf("%032x", w), Node: id(1 + w%16), Rank: uint64(w),
			Finish: true, Take: int64(n), Nonce: uint64(n),
		}
		state.Stamp(step, int64(n))
		data, err := state.Encode(step)
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n++ {
		if n%cap(commands) == 0 {
			b.StopTimer()
			commands = commands[:0]
			for i := range min(cap(commands), b.N-n) {
				commands = append(commands, next(n+i))
			}
			b.StartTimer()
		}
		c.index++
		if r, err := c.m.Apply(c.index, commands[n%cap(commands)]); err != nil || r.Taken().Unit != int64(n) {
			b.Fatalf("%s, %v", text(r), err)
		}
	}
}

// large has a thousand datasets of 64 nodes, 65,536 plans of 64 jobs of 1,024
// ranks, 64 queues of 131,072 units, half of them done, by 256 readers each.
func large(b *testing.B) *cluster {
	c := founded(b, 64)
	for n := range 1000 {
		registration := json.RawMessage(fmt.Sprintf(`{"source":"hdfs://namenode/data/%d","layout":"records","files":%d}`, n, n))
		c.do(&state.PutDataset{Name: fmt.Sprintf("set%d", n), Registration: registration, Index: index(n + 10), IndexBytes: 1 << 20})
		for rank := range uint64(64) {
			c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 64, Rank: rank, Node: id(1 + n%64)})
		}
	}
	var nodes [64]state.Runs
	for job := range nodes {
		for n := range 64 {
			nodes[job] = append(nodes[job], state.Run{Node: id(1 + (n+job)%64), Count: 16})
		}
	}
	for n := range state.MaxPlans {
		c.do(&state.Settle{View: view(n, 1024), Generation: 1, Nodes: nodes[n%64]})
	}
	for n := range 64 {
		largeQueue(c, view(n, 1024))
	}
	return c
}

func largeQueue(c *cluster, view string) {
	const units = 1 << 17
	c.do(&state.OpenQueue{View: view, Generation: 1, Units: units, Policy: "flow"})
	for n, unit := range rand.Perm(units)[:units/2/16] { // a sixteenth of the commands; pages fill all the same
		w := n % 256
		c.do(&state.TakeUnit{
			View: view, Reader: fmt.Sprintf("%032x", w), Node: id(1 + w%64), Rank: uint64(w),
			Finish: true, Take: int64(unit), Nonce: uint64(n),
		})
	}
}

// BenchmarkLarge is what a snapshot of a large state costs: taking it, the
// first commands after it, which copy what they change, writing and reading.
func BenchmarkLarge(b *testing.B) {
	c := large(b)
	data := written(b, snapshot(b, c.m))
	b.Logf("%d bytes, %+v", len(data), c.m.Sizes())
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			snapshot(b, c.m)
		}
	})
	n := 1 << 30
	commands := map[string]func() state.Command{
		"plan after a snapshot": func() state.Command {
			return &state.Settle{View: view(n, 1024), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 1024}}}
		},
		"step after a snapshot": func() state.Command {
			return &state.TakeUnit{View: view(1, 1024), Reader: fmt.Sprintf("%032x", 1), Node: id(2), Rank: 1, Finish: true, Take: -1, Nonce: uint64(n)}
		},
	}
	for name, command := range commands {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				snapshot(b, c.m)
				n++
				c.do(command())
			}
		})
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			written(b, snapshot(b, c.m))
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := state.Read(bytes.NewReader(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
