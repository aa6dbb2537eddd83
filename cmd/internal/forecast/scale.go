package forecast

import (
	"cmp"
	"math"

	"rankfs/cache/simulate"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A scale is the ratio of the job to the smaller one that is simulated: budgets
// shrink with the dataset, but for what batches in use take.
type scale struct{ by, inUse float64 }

func (s scale) small(ram int64) int64 {
	return int64(max(float64(ram)/s.by, min(float64(ram), s.inUse)))
}

// large is the least memory that small makes so much of.
func (s scale) large(bytes float64) float64 {
	if bytes <= s.inUse {
		return bytes
	}
	return bytes * s.by
}

// scenario is the job with at most that many batches.
func (j *Job) scenario(most uint64) (simulate.Scenario, scale) {
	cut := j.cut()
	batch := max(1, float64(cut.Global)/float64(cut.Ranks))
	batches := max(1, float64(cut.N)/batch)
	by := max(1, batches/float64(most))
	partitions := math.Ceil(batches / by)
	batchBytes := float64(j.set.Bytes) / by / partitions
	s := simulate.Scenario{
		Nodes: j.nodes, Ranks: int(j.view.Ranks) / j.nodes, Epochs: j.epochs, Step: j.step, Seed: j.view.Seed, First: j.view.Epoch, Tail: meta.TailKeep,
		Partitions: int(partitions), Bytes: []int64{int64(math.Ceil(batchBytes))},
		Packed: j.packed, Workers: j.workers, Lockstep: true, Cross: true,
		Costs: simulate.Costs{
			Source: float64(j.bandwidth), Stream: float64(j.stream), Latency: j.latency, Link: float64(j.link),
			DiskRead: float64(j.disk), DiskWrite: float64(j.disk) / 2, Decode: assumedUnpack, Encode: assumedUnpack / 4,
		},
	}
	inUse := 20 * batchBytes * float64(s.Ranks)
	if j.remote() {
		s.Costs.Latency, s.Near = cmp.Or(j.latency, assumedLatency.Seconds()), j.view.Assign == meta.AssignLocal
	}
	switch {
	case j.view.ByChunk():
		s.Order = j.view.Order
	case j.view.Order.Kind == meta.OrderNone:
	case j.parts():
		inUse += j.gather(&s, batch, by)
	default:
		s.Once = true
	}
	if j.trace != nil {
		j.replay(&s)
	}
	size := scale{by, inUse}
	s.Memory, s.Disk = size.small(j.ram), int64(float64(j.nvme)/by)
	return s, size
}

// remote reports whether chunks are fetched whole. A dataset that is imagined has no
// source, and is not.
func (j *Job) remote() bool {
	u, err := uri.Parse(cmp.Or(j.set.Root, j.set.Source))
	return err == nil && u.Remote()
}

// parts reports whether batches are made of chunks that are kept, as the daemon
// decides it.
func (j *Job) parts() bool {
	source := order.Source{Records: j.set.Records, Chunks: uint64(j.set.Chunks), Bytes: j.set.Bytes}
	return j.remote() && order.Stays(j.view.Order, source, order.Room(j.ram, j.nvme)*int64(j.nodes))
}

// gather makes batches of grains of chunks. It returns the bytes of the chunks
// that a window has in use.
func (j *Job) gather(s *simulate.Scenario, batch, by float64) float64 {
	const maxGrains = 64 // grains of a batch: as many chunks as it can have records of
	grain := math.Ceil(batch / maxGrains)
	chunks := max(1, float64(j.set.Chunks))
	s.Batch = max(1, int(math.Round(batch/grain)))
	s.Partitions = max(1, int(chunks/by))
	s.Grains = max(1, int(math.Round(float64(j.set.Records)/chunks/grain)))
	s.Bytes = []int64{int64(float64(j.set.Bytes) / chunks)}
	s.Order = j.view.Order
	if s.Order.Kind == meta.OrderWindow {
		s.Order.Window = max(2, uint64(float64(s.Order.Window)/grain/by))
	}
	return 4 * float64(cmp.Or(s.Bytes[0], 1))
}

// remedies says what was found in the job's own size.
func (j *Job) remedies(found []simulate.Remedy, size scale) []Remedy {
	names := [...]string{simulate.Memory: "ram", simulate.SourceRate: "bandwidth", simulate.LinkRate: "link", simulate.DiskRate: "disk"}
	var all []Remedy
	for _, f := range found {
		bytes := f.Bytes
		if f.What == simulate.Memory {
			bytes = size.large(bytes)
		}
		all = append(all, Remedy{names[f.What], roundUp(bytes)})
	}
	return all
}

// roundUp leaves a number of bytes that is short in a unit that options have.
func roundUp(bytes float64) int64 {
	unit := 1.0
	for bytes/unit >= 10<<10 {
		unit *= 1 << 10
	}
	return int64(math.Ceil(bytes/unit-1e-9) * unit)
}
