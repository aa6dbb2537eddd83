package simulate

import (
	"math"

	"rankfs/cache/ahead"
	"rankfs/meta"
)

// A Scenario is a job, its dataset and the machines that it runs on.
type Scenario struct {
	Nodes  int
	Ranks  int     // on each node
	Epochs int     //
	Step   float64 // seconds that a rank works on a batch

	// What is kept and moved is a partition: a batch, or a chunk that batches
	// are made of.
	Partitions int
	Bytes      []int64 // of each partition, or one number for all
	Packed     float64 // bytes of it packed, for each of its own; zero: it is never packed
	Grains     int     // equal shares of a partition that the order deals with; zero: 1
	Batch      int     // grains of a batch; zero: 1
	Order      meta.Order
	Seed       uint64
	First      uint64 // number of the first epoch, by which an order shuffles
	Tail       meta.Tail
	Near       bool // of a step's grains a rank reads those that its node owns, as far as there are such; of whole partitions, of an epoch's
	Lockstep   bool // ranks meet after every step, as those of a training job do
	Once       bool // nothing is kept: the batches of every epoch are others, and made straight from the source

	// Reads, if there are any, are the grains of each epoch in order, instead of
	// all of them in Order. An epoch has each once at most, and takes as many
	// steps as the longest one has.
	Reads   [][]uint32
	Sets    []int32 // which set each partition belongs to; nil: all to one
	Horizon int     // epochs that policies see; zero: 1

	Memory int64 // of a node, in bytes: RAM and packed
	Disk   int64
	Costs  Costs

	Workers  int  // of a node; zero: 2
	MaxAhead int  // batches made ready ahead of a rank; zero: what latency, pace and memory say
	Cross    bool // they may be the next epoch's
	Choices  int  // of levels, in an epoch; zero: 4
}

// Costs are the rates at which bytes move, and the latencies, in bytes a second and seconds. Of
// rates, zero is infinite.
type Costs struct {
	Source  float64 // of the source, for all nodes together
	Stream  float64 // of one transfer from it
	Latency float64 // until one begins

	Link        float64 // of a node's link to the others, each direction
	LinkLatency float64 // until a transfer begins

	DiskRead, DiskWrite float64 // of a node
	Decode, Encode      float64 // of a worker, in bytes that are not packed

	Settle float64 // until the plan of an epoch is settled
}

// Bounds on what a scenario may be: 200 bytes are kept for a partition, and 16
// for a grain.
const (
	maxPartitions = 1 << 22
	maxGrains     = 1 << 25
	maxNodes      = 1 << 12
	maxRanks      = 1 << 16
	maxEpochs     = 1 << 16
	maxAhead      = 2 * ahead.MaxFills
	maxHorizon    = 64
)

func (s Scenario) withDefaults() (Scenario, error) {
	s.Grains, s.Batch = max(s.Grains, 1), max(s.Batch, 1)
	if s.Workers == 0 {
		s.Workers = 2
	}
	if s.MaxAhead == 0 {
		s.MaxAhead = s.window()
	}
	if s.Choices == 0 {
		s.Choices = 4
	}
	s.Horizon = max(s.Horizon, 1)
	for _, rate := range []*float64{&s.Costs.Source, &s.Costs.Stream, &s.Costs.Link, &s.Costs.DiskRead, &s.Costs.DiskWrite, &s.Costs.Decode, &s.Costs.Encode} {
		if *rate == 0 {
			*rate = math.Inf(1)
		}
	}
	return s, s.check()
}

const page = 4096

// window is the number of batches that memory holds of those that are made ready for a rank, as
// far as any source has so many of use.
func (s *Scenario) window() int {
	const minAhead = 16
	if len(s.Bytes) == 0 || s.Ranks < 1 || s.Partitions < 1 {
		return minAhead
	}
	size := max(s.bytes(0)*int64(s.Batch)/int64(s.Grains), page)
	return int(min(max(s.Memory/int64(s.Ranks)/size, minAhead), maxAhead))
}

// check reports what cannot be simulated, and what to do about it.
func (s *Scenario) check() error {
	for _, n := range []struct {
		what       string
		n, low, to int
	}{
		{"nodes", s.Nodes, 1, maxNodes},
		{"ranks", s.Ranks * max(1, min(s.Nodes, maxNodes)), 1, maxRanks},
		{"epochs", s.Epochs, 1, maxEpochs},
		{"partitions", s.Partitions, 1, maxPartitions},
		{"grains", s.Partitions * min(s.Grains, maxGrains), 1, maxGrains},
		{"grains of a batch", s.Batch, 1, maxGrains},
		{"workers", s.Workers, 1, maxRanks},
		{"batches ahead", s.MaxAhead, 1, maxAhead},
		{"choices of an epoch", s.Choices, 1, 1000},
		{"epochs to see", s.Horizon, 1, maxHorizon},
	} {
		if n.n < n.low || n.n > n.to {
			return meta.Worded(meta.ErrInvalid, "simulate %d %s: use %d to %d", n.n, n.what, n.low, n.to)
		}
	}
	for _, v := range []float64{s.Step, s.Packed, s.Costs.Source, s.Costs.Stream, s.Costs.Latency, s.Costs.Link, s.Costs.LinkLatency,
		s.Costs.DiskRead, s.Costs.DiskWrite, s.Costs.Decode, s.Costs.Encode, s.Costs.Settle} {
		if !(v >= 0) {
			return meta.Worded(meta.ErrInvalid, "simulate: %v is no time and no rate: use zero or more", v)
		}
	}
	if err := s.checkReads(); err != nil {
		return err
	}
	return s.checkBytes()
}

func (s *Scenario) checkReads() error {
	if n := len(s.Sets); n != 0 && n != s.Partitions {
		return meta.Worded(meta.ErrInvalid, "simulate: sets of %d partitions, and there are %d", n, s.Partitions)
	}
	if s.Reads == nil {
		return nil
	}
	if len(s.Reads) < s.Epochs || s.Tail != meta.TailKeep {
		return meta.Worded(meta.ErrInvalid, "simulate: reads of %d epochs of %d: say all, with tail=keep", len(s.Reads), s.Epochs)
	}
	seen := make([]int, s.Partitions*s.Grains)
	for epoch, reads := range s.Reads {
		for _, g := range reads {
			if int(g) >= len(seen) || seen[g] == epoch+1 {
				return meta.Worded(meta.ErrInvalid, "simulate: epoch %d reads grain %d, which is not there or was read", epoch, g)
			}
			seen[g] = epoch + 1
		}
	}
	return nil
}

// most is the number of grains of the longest epoch.
func (s *Scenario) most() (n int) {
	if s.Reads == nil {
		return s.Partitions * s.Grains
	}
	for _, reads := range s.Reads {
		n = max(n, len(reads))
	}
	return n
}

func (s *Scenario) checkBytes() error {
	if n := len(s.Bytes); n != 1 && n != s.Partitions {
		return meta.Worded(meta.ErrInvalid, "simulate: bytes of %d partitions, and there are %d", n, s.Partitions)
	}
	if s.Memory < 0 || s.Disk < 0 {
		return meta.Worded(meta.ErrInvalid, "simulate: budgets are zero or more")
	}
	largest := int64(0)
	for _, b := range s.Bytes {
		if b < 0 || b > 1<<50 {
			return meta.Worded(meta.ErrInvalid, "simulate: a partition of %d bytes", b)
		}
		largest = max(largest, b)
	}
	// As many grains as a batch has, each of the largest partition.
	batch := float64(largest) * float64(s.Batch) / float64(s.Grains)
	if float64(s.Memory) < batch {
		return meta.Worded(meta.ErrInvalid, "simulate: memory of %d bytes, a batch has %.0f: give it more", s.Memory, batch)
	}
	return nil
}

func (s *Scenario) ranks() int { return s.Nodes * s.Ranks }

// bytes are the bytes of a partition.
func (s *Scenario) bytes(partition int32) int64 {
	if len(s.Bytes) == 1 {
		return s.Bytes[0]
	}
	return s.Bytes[partition]
}

// grain are the bytes of a share of a partition, which add up to those of all.
func (s *Scenario) grain(partition int32, i int) int64 {
	b, n := s.bytes(partition), int64(s.Grains)
	return b*int64(i+1)/n - b*int64(i)/n
}
