package assign_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankfs/meta/assign"
)

// Steps of 1,024 records, as they are divided when a batch is looked up: of a
// shuffled order, whose records are anywhere among many chunks, and of the
// source's own, where they are in a few.
func BenchmarkStep(b *testing.B) {
	for _, nodes := range []int{4, 16, 64, 128} {
		for _, order := range []string{"none", "full"} {
			for _, replicas := range []int{1, 3} {
				b.Run(fmt.Sprintf("nodes=%d/order=%s/replicas=%d", nodes, order, replicas), func(b *testing.B) {
					c := randomCase(nodes, 1024/nodes, replicas, 1, 2)
					if order == "none" {
						for position := range c.of {
							c.of[position] = int32(position / 300)
						}
					}
					benchmarkStep(b, c)
				})
			}
		}
	}
}

// A large step of a large job.
func BenchmarkLargeStep(b *testing.B) {
	benchmarkStep(b, randomCase(1000, 256, 3, 1, 2))
}

func benchmarkStep(b *testing.B, c caseOf) {
	p := c.planner(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Step(c.strict, c.of); err != nil {
			b.Fatal(err)
		}
	}
}

// Whole epochs of chunks in three replicas as HDFS places them: one on any
// node, two in another rack. With skew two chunks in three have one replica, on
// half the nodes of a quarter of the racks, so that much is not local.
func BenchmarkEpoch(b *testing.B) {
	for _, size := range []struct {
		chunks, nodes, racks int
		skew                 bool
	}{
		{16_384, 128, 8, false}, {16_384, 128, 0, false}, {16_384, 128, 8, true},
		{1_000_000, 1000, 40, false}, {1_000_000, 1000, 0, false}, {1_000_000, 1000, 40, true},
	} {
		b.Run(fmt.Sprintf("chunks=%d/nodes=%d/racks=%d/skew=%v", size.chunks, size.nodes, size.racks, size.skew), func(b *testing.B) {
			cluster, sets, of := hdfsPlacement(size.chunks, size.nodes, size.racks, size.skew)
			strict := shares(b, size.chunks, size.nodes)
			b.ReportAllocs()
			var p *assign.Planner
			var plan assign.Division
			var err error
			for b.Loop() {
				if p, err = assign.New(cluster, sets); err != nil {
					b.Fatal(err)
				}
				if plan, err = p.Epoch(strict, of); err != nil {
					b.Fatal(err)
				}
			}
			r := p.Report(of, plan, strict, func(int) uint64 { return 1 })
			for d := assign.Local; d <= assign.Remote; d++ {
				b.ReportMetric(100*float64(r.Plan.Positions[d])/float64(size.chunks), "%"+d.String())
			}
		})
	}
}

func hdfsPlacement(chunks, nodes, racks int, skew bool) (assign.Cluster, *assign.Sets, []int32) {
	r := rand.New(rand.NewPCG(5, uint64(nodes)))
	c := assign.Cluster{Nodes: nodes}
	inRack := nodes / max(racks, 1)
	for node := range nodes {
		c.NodeOf = append(c.NodeOf, int32(node))
		if racks > 0 {
			c.RackOf = append(c.RackOf, int32(node/inRack))
		}
	}
	var sets assign.Sets
	of := make([]int32, chunks)
	for i := range of {
		first, second := r.IntN(nodes), r.IntN(nodes)
		third := second/inRack*inRack + r.IntN(inRack)
		if skew && i%3 > 0 {
			first = first / 4 &^ 1
			second, third = first, first
		}
		of[i] = sets.Add(int32(first), int32(second), int32(third))
	}
	return c, &sets, of
}

func shares(t fataler, positions, ranks int) assign.Division {
	counts := make([]int32, ranks)
	for rank := range counts {
		counts[rank] = int32(positions*(rank+1)/ranks - positions*rank/ranks)
	}
	return contiguous(t, counts)
}

// DL-MPI's program.
func BenchmarkStatic(b *testing.B) {
	for _, size := range []struct{ chunks, nodes int }{{16_384, 128}, {1_000_000, 1000}} {
		for _, skew := range []bool{false, true} {
			b.Run(fmt.Sprintf("chunks=%d/nodes=%d/skew=%v", size.chunks, size.nodes, skew), func(b *testing.B) {
				cluster, sets, of := hdfsPlacement(size.chunks, size.nodes, 0, skew)
				b.ReportAllocs()
				points := 0
				for b.Loop() {
					p, err := assign.New(cluster, sets)
					if err != nil {
						b.Fatal(err)
					}
					s, err := p.Static(of, assign.Weights{Local: 1, Time: 1})
					if err != nil {
						b.Fatal(err)
					}
					points = len(s.Curve)
				}
				b.ReportMetric(float64(points), "points")
			})
		}
	}
}
