// Division divides one epoch of chunks among nodes with a rank each, and says
// how long that took and how much memory the process had at most.
//
//	division CHUNKS NODES RACKS
//
// A chunk has three replicas as HDFS places them, one on any node and two in
// another rack.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankfs/meta/assign"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "division:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 4 {
		return fmt.Errorf("usage: division CHUNKS NODES RACKS")
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(os.Args[i+1]); err != nil || n[i] < 1 {
			return fmt.Errorf("%q is no number above zero", os.Args[i+1])
		}
	}
	chunks, nodes, racks := n[0], n[1], n[2]
	cluster, holders := place(chunks, nodes, racks)
	var sets assign.Sets
	of := make([]int32, chunks)
	for i, three := range holders {
		of[i] = sets.Add(three[:]...)
	}
	counts := make([]int32, nodes)
	for rank := range counts {
		counts[rank] = int32(chunks*(rank+1)/nodes - chunks*rank/nodes)
	}
	strict, err := assign.Contiguous(counts)
	if err != nil {
		return err
	}
	begin := time.Now()
	p, err := assign.New(cluster, &sets)
	if err != nil {
		return err
	}
	plan, err := p.Epoch(strict, of)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	most, err := peak()
	if err != nil {
		return err
	}
	local := 0
	for rank, node := range cluster.NodeOf {
		for _, chunk := range plan.Of(rank) {
			if slices.Contains(holders[chunk][:], node) {
				local++
			}
		}
	}
	fmt.Printf("division seconds=%.4f MiB=%.1f local=%.4f\n",
		took.Seconds(), most, float64(local)/float64(chunks))
	return nil
}

// peak is the most memory that the process had, in MiB. What getrusage(2) says
// would be that of the process that started this one, if it had more.
func peak() (float64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	return kib / 1024, err
}

func place(chunks, nodes, racks int) (assign.Cluster, [][3]int32) {
	random := rand.New(rand.NewPCG(5, uint64(nodes)))
	c := assign.Cluster{Nodes: nodes}
	inRack := nodes / racks
	for node := range nodes {
		c.NodeOf, c.RackOf = append(c.NodeOf, int32(node)), append(c.RackOf, int32(node/inRack))
	}
	holders := make([][3]int32, chunks)
	for i := range holders {
		first, second := random.IntN(nodes), random.IntN(nodes)
		third := min(nodes-1, second/inRack*inRack+random.IntN(inRack))
		holders[i] = [3]int32{int32(first), int32(second), int32(third)}
	}
	return c, holders
}
