package forecast

import (
	"fmt"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/terminal"
	"rankfs/meta"
)

// What is assumed where nothing was measured: a disk and a network of today, and
// a step of a training job on one.
const (
	assumedSource  = 1 << 30
	assumedLink    = 1_250_000_000 // 10 Gbit/s
	assumedDisk    = 1 << 30
	assumedStep    = 100 * time.Millisecond
	assumedLatency = 5 * time.Millisecond // of HDFS
	assumedUnpack  = 1 << 30
)

// Complete takes from the daemon the figures that no option gives.
func (j *Job) Complete(set control.Dataset, options string, s control.Status, cores int) (err error) {
	j.set, j.workers = set, max(2, cores)
	if j.own, err = viewOf(set, ""); err != nil {
		return err
	}
	if j.view, err = viewOf(set, options); err != nil {
		return err
	}
	if j.ranks > 0 {
		if j.view, err = j.view.With(fmt.Sprintf("ranks=%d", j.ranks)); err != nil {
			return err
		}
	}
	if set.Records == 0 && set.Chunks == 0 || set.Bytes <= 0 {
		return meta.Worded(meta.ErrInvalid, "%s has no bytes: there is nothing to simulate", set.Name)
	}
	if j.cut().Steps() == 0 {
		return meta.Worded(meta.ErrInvalid, "%s has less than one step, and tail=drop leaves that out", set.Name)
	}
	if err := j.machines(s); err != nil {
		return err
	}
	j.rates(s)
	return j.replays()
}

// View is the view to simulate, by its full name, and on how many nodes.
func (j *Job) View() (name string, nodes int) { return j.view.String(), j.nodes }

// Fits is an error if the ranks of a node, which take each step together, cannot hold a batch
// each at once, so that one of them would be refused; or if one batch is larger than all memory,
// where no disk and no other node helps. Batches of a dataset that does not exist yet are of
// one size.
func (j *Job) Fits(x control.Explanation) error {
	ranks, batch, need := j.view.Ranks/uint64(j.nodes), x.LargestBytes, float64(x.NodeBytes)
	if j.Imaginary() {
		batch = j.batchBytes()
		need = float64(meta.WholePages(batch)) * float64(ranks)
	}
	has, ways := terminal.Bytes(j.ram+j.nvme), "--ram "+meta.FormatRoom(int64(need))+" or more, or --nvme, spread the ranks over more --nodes,"
	switch {
	case meta.WholePages(batch) > j.ram:
		if j.nvme > 0 {
			has = terminal.Bytes(j.ram) + " of ram: batches that a disk alone has room for are not predicted"
		}
		least := max(meta.WholePages(batch), int64(need)-j.nvme)
		if ways = "--ram " + meta.FormatRoom(least) + " or more,"; least > meta.WholePages(batch) {
			ways += " spread the ranks over more --nodes,"
		}
	case need > float64(j.ram+j.nvme):
	default:
		return nil
	}
	each := terminal.Bytes(batch)
	if float64(meta.WholePages(batch))*float64(ranks) != need {
		each = "up to " + each
	}
	who := fmt.Sprintf("%s on a node, each with a batch of %s, need %s together", terminal.Plural(ranks, "rank"), each, terminal.Bytes(int64(need)))
	if ranks == 1 {
		who = fmt.Sprintf("a rank, with a batch of %s, needs %s", each, terminal.Bytes(int64(need)))
	}
	return failure.Hint(meta.Worded(meta.ErrNoSpace, "%s, and a node has %s", who, has), "give it %s or make batches smaller", ways)
}

// batchBytes is the size of a batch on the mean.
func (j *Job) batchBytes() int64 {
	cut := j.cut()
	return int64(float64(j.set.Bytes) * min(1, float64(cut.Global)/float64(cut.Ranks)/float64(cut.N)))
}

// Imaginary reports whether the dataset does not exist yet.
func (j *Job) Imaginary() bool { return j.bytes > 0 }

// Imagined is a dataset that does not exist yet. Its records are small beside a
// batch, and its chunks are as HDFS has them.
func (j *Job) Imagined(name string) (control.Dataset, error) {
	if j.ram < 0 {
		return control.Dataset{}, meta.Worded(meta.ErrInvalid, "nothing need be mounted with --bytes, so say --ram too")
	}
	batch := meta.BatchSize{Unit: meta.UnitBytes, N: imaginedBatch}
	return control.Dataset{
		Name: name, Bytes: j.bytes, Records: uint64(max(1, j.bytes/imaginedRecord)), Chunks: int(max(1, j.bytes/imaginedChunk)),
		Ranks: max(1, j.ranks), Batch: batch.String(), Order: meta.Order{}.String(), Tail: meta.TailKeep.String(),
	}, nil
}

const (
	imaginedRecord = 4 << 10
	imaginedBatch  = 64 << 20
	imaginedChunk  = 128 << 20
)

// viewOf is a view of a dataset as the daemon describes it.
func viewOf(set control.Dataset, options string) (v meta.View, err error) {
	v = meta.View{Dataset: set.Name, Ranks: set.Ranks, Seed: set.Seed}
	if v.Order, err = meta.ParseOrder(set.Order); err != nil {
		return v, err
	}
	if v.Tail, err = meta.ParseTail(set.Tail); err != nil {
		return v, err
	}
	if v.Step, err = meta.ParseBatch(set.Batch); err != nil {
		return v, err
	}
	v.Step = v.Step.Times(v.Ranks)
	if options != "" {
		return v.With(options)
	}
	return v, v.Check()
}

func (j *Job) cut() meta.Cut {
	return j.view.Cut(j.set.Records, j.set.Bytes, uint64(j.set.Chunks))
}

// machines finds how many nodes there are, and what they have.
func (j *Job) machines(s control.Status) error {
	from := "given"
	if j.nodes == 0 {
		from = "mounted"
		for _, n := range s.Cluster.Nodes {
			if n.State == "up" {
				j.nodes++
			}
		}
		j.nodes = max(j.nodes, 1)
	}
	if j.view.Ranks%uint64(j.nodes) != 0 {
		do := "do"
		if j.view.Ranks == 1 {
			do = "does"
		}
		return failure.Hint(meta.Worded(meta.ErrInvalid, "%s %s not divide evenly among %s", terminal.Plural(j.view.Ranks, "rank"), do, terminal.Plural(j.nodes, "node")),
			"give --nodes or --ranks, so that each node has as many")
	}
	j.note("nodes", float64(j.nodes), terminal.Count(j.nodes), from)
	for _, b := range []struct {
		name string
		to   *int64
	}{{"ram", &j.ram}, {"nvme", &j.nvme}} {
		from := "given"
		if *b.to < 0 {
			*b.to, from = 0, "mounted"
			for _, t := range s.Tiers {
				if t.Name == b.name {
					*b.to = t.Budget
				}
			}
		}
		if *b.to > 0 {
			j.note(b.name, float64(*b.to), terminal.Bytes(*b.to)+" a node", from)
		}
	}
	return nil
}

// rates takes those that were measured, or assumes some.
func (j *Job) rates(s control.Status) {
	j.source(s)
	if j.nodes > 1 {
		j.rate("link", &j.link, assumedLink, " a node")
	}
	if j.nvme > 0 {
		j.rate("disk", &j.disk, assumedDisk, " a node")
	}
	if j.packed > 0 {
		j.note("unpacking", assumedUnpack, terminal.Bytes(assumedUnpack)+"/s a worker", "assumed")
	}
	from := "given"
	switch {
	case j.step == 0 && j.pace > 0:
		j.step, from = j.pace, "measured"
	case j.step == 0:
		j.step, from = assumedStep.Seconds(), "assumed"
	}
	j.note("step", j.step, terminal.Seconds(j.step)+" a batch", from)
}

func (j *Job) rate(name string, to *int64, assumed int64, of string) {
	from := "given"
	if *to == 0 {
		*to, from = assumed, "assumed"
	}
	j.note(name, float64(*to), terminal.Bytes(*to)+"/s"+of, from)
}

// source estimates the rate and latency of the source. What the daemon has measured is of fills, of which
// there are as many at a time as workers. Small ones say how long it takes until bytes
// come, and not how fast they come then.
func (j *Job) source(s control.Status) {
	c, given := s.Counters.FillCost, j.bandwidth > 0
	if !given && c.Rate > 0 {
		j.stream = int64(max(1, c.Rate))
		j.bandwidth = j.stream * int64(j.workers*j.nodes)
		j.note("source", float64(j.bandwidth), fmt.Sprintf("%s/s a fill, %d at a time", terminal.Bytes(j.stream), j.workers*j.nodes), "measured")
	} else {
		j.rate("source", &j.bandwidth, assumedSource, " for all")
		j.stream = j.bandwidth
	}
	if j.latency = c.Latency; c.Rate == 0 { // of which a part was for the bytes
		j.latency = max(0, c.Latency-float64(c.Bytes)/float64(j.stream))
	}
	if given || j.latency == 0 {
		j.latency = 0
		return
	}
	j.note("latency", j.latency, terminal.Seconds(j.latency)+" a fill until bytes come", "measured")
}
