package forecast

import (
	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// A Job is the subject of a simulation: a view of a dataset, on machines like these. A
// field below zero, or zero where that means nothing, is not known yet.
type Job struct {
	set  control.Dataset
	own  meta.View // what the name of the dataset alone stands for
	view meta.View

	nodes, epochs         int
	ranks                 uint64
	workers               int
	ram, nvme             int64
	bandwidth, link, disk int64
	stream                int64   // of the bandwidth, for one transfer
	latency               float64 // until one begins; zero: nothing says
	step, packed          float64
	pace                  float64      // what was measured of step; zero: nothing
	bytes                 int64        // of a dataset that does not exist yet; zero: it does
	trace                 *trace.Trace // how ranks read; nil: in order

	facts []Fact
}

// A Fact is a figure that the simulation used, and where it is from.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // bytes, bytes a second, or seconds
	Text  string  `json:"text"`
	From  string  `json:"from"` // "given", "mounted", "measured" or "assumed"
}

// note adds a figure that is used.
func (j *Job) note(name string, value float64, text, from string) {
	j.facts = append(j.facts, Fact{name, value, text, from})
}
