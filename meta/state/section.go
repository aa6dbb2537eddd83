package state

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"

	"rankfs/meta"
)

// The frames of each section. Every one is checked for what would break the
// machine later, and for what no machine writes.

func (in *restorer) readHeader(payload []byte) error {
	if in.header {
		return errTwice
	}
	in.header = true
	h := &in.s.header
	if err := decode(payload, h); err != nil {
		return err
	}
	if h.version() > Version || snapshotOf(h.version()) != in.version {
		return errWrong
	}
	return must(h.Now >= 0 && h.Generation < 1<<63 && h.Sequence < 1<<63 && h.Evicted <= h.Sequence, errWrong)
}

func (in *restorer) token(payload []byte) error {
	var t Token
	if err := decode(payload, &t); err != nil {
		return err
	}
	_, twice := in.s.tokens.get(t.Hash)
	used := t.Used
	t.Used = 0
	if err := first(t.check(), must(t.version() == Oldest || in.s.version() >= Signed, errWrong), must(!twice, errTwice), must(0 <= used && used <= t.Uses && t.Expires > in.s.Now, errWrong)); err != nil {
		return err
	}
	t.Used = used
	in.s.addToken(t)
	return must(in.s.tokens.len() <= MaxSpent, errMany)
}

func (in *restorer) node(payload []byte) error {
	var n Node
	if err := decode(payload, &n); err != nil {
		return err
	}
	role := n.Role
	n.Role = ""
	if err := first(n.check(), checkRole(role, in.s.version()), in.newID(n.ID)); err != nil {
		return err
	}
	n.Role = role
	in.s.nodes.set(n.ID, n)
	return must(in.s.nodes.len() <= MaxNodes, errMany)
}

func (in *restorer) removed(payload string) error {
	id, host, _ := strings.Cut(payload, " ")
	if err := first(checkID(id), checkText("host", host, maxText), in.newID(id)); err != nil {
		return err
	}
	in.s.removed.set(id, host)
	return must(in.s.removed.len() <= MaxRemoved, errMany)
}

func (in *restorer) newID(id string) error {
	_, member := in.s.nodes.get(id)
	_, removed := in.s.removed.get(id)
	return must(!member && !removed, errTwice)
}

func (in *restorer) dataset(payload []byte) error {
	var frame datasetFrame
	if err := decode(payload, &frame); err != nil {
		return err
	}
	d := frame.Dataset
	d.Record = frame.Record
	put := PutDataset{Name: d.Name, Record: d.Record, Index: d.Index, IndexBytes: d.IndexBytes}
	_, twice := in.s.datasets.get(d.Name)
	order := d.Before < d.Generation && d.Generation <= in.s.Generation
	if err := first(put.check(), must(!twice, errTwice), must(order && json.Valid(d.Record), errWrong)); err != nil {
		return err
	}
	in.s.addDataset(&d)
	return must(in.s.datasets.len() <= MaxDatasets && in.s.records <= MaxRecords, errMany)
}

// sequence takes a number that nothing else may have.
func (in *restorer) sequence(n uint64) error {
	if in.sequences[n] {
		return errTwice
	}
	in.sequences[n] = true
	return must(n > 0 && n <= in.s.Sequence, errWrong)
}

func (in *restorer) readJob(payload []byte) error {
	in.job = new(jobFrame)
	if err := decode(payload, in.job); err != nil {
		return err
	}
	j := in.job
	_, twice := in.s.jobs.get(jobKey{j.Dataset, j.Ranks})
	_, known := in.s.datasets.get(j.Dataset)
	return first(in.sequence(j.Sequence), must(!twice, errTwice), must(known && j.Ranks > 0 && j.Ranks <= meta.MaxRanks, errWrong))
}

func (in *restorer) claims(payload []byte) error {
	frame := in.job
	in.job = nil
	if uint64(len(payload)) != 16*frame.Ranks {
		return errWrong
	}
	j := &job{sequence: frame.Sequence, node: make([]uint64, frame.Ranks), last: make([]uint64, frame.Ranks)}
	for i := range j.node {
		j.node[i] = binary.LittleEndian.Uint64(payload[16*i:])
		j.last[i] = binary.LittleEndian.Uint64(payload[16*i+8:])
	}
	in.s.addJob(jobKey{frame.Dataset, frame.Ranks}, j)
	return must(in.s.claimed <= MaxClaimed && in.s.jobs.len() <= MaxAllJobs, errMany)
}

func (in *restorer) rankMap(payload []byte) error {
	var r Runs
	if err := r.UnmarshalText(payload); err != nil {
		return err
	}
	if err := r.check(r.Ranks()); err != nil {
		return err
	}
	in.nodes = append(in.nodes, r)
	return must(len(in.nodes) <= MaxPlans && r.Ranks() <= meta.MaxRanks, errMany)
}

func (in *restorer) plan(payload []byte) error {
	var frame planFrame
	if err := decode(payload, &frame); err != nil {
		return err
	}
	p := frame.Plan
	v, err := checkView(p.View)
	if err != nil {
		return err
	}
	d, err := in.s.current(v.Dataset, p.Generation)
	if err != nil {
		return err
	}
	_, twice := in.s.plans.get(p.View)
	if frame.Map < 0 || frame.Map >= len(in.nodes) || p.Nodes != nil || d.Index != p.Index || p.Sequence <= in.pinned {
		return errWrong
	}
	p.Nodes, in.pinned = in.nodes[frame.Map], p.Sequence
	if err := first(in.sequence(p.Sequence), must(!twice, errTwice), must(p.Nodes.Ranks() == v.Ranks, errWrong)); err != nil {
		return err
	}
	in.s.addPlan(&p)
	return must(in.s.plans.len() <= MaxPlans && in.s.maps.runs <= MaxRuns, errMany)
}

func (in *restorer) readQueue(payload []byte) error {
	var info Queue
	if err := decode(payload, &info); err != nil {
		return err
	}
	open := OpenQueue{View: info.View, Units: info.Units, Policy: info.Policy}
	if err := first(open.check(), in.sequence(info.Sequence)); err != nil {
		return err
	}
	v, err := checkView(info.View)
	if err != nil {
		return err
	}
	if _, err := in.s.current(v.Dataset, info.Generation); err != nil {
		return err
	}
	_, twice := in.s.queues.get(info.View)
	if err := first(must(!twice, errTwice), must(info.Done == 0 && info.Held == 0 && info.Workers == 0 && info.Aside == 0, errWrong)); err != nil {
		return err
	}
	in.queue = newQueue(info, v.Ranks, in.s.era)
	in.s.addQueue(in.queue)
	return must(in.s.queues.len() <= MaxQueues && in.s.units <= MaxAllUnits, errMany)
}

func (in *restorer) units(payload []byte) error {
	if in.queue == nil || len(payload) != 8+pageUnits/8 || len(in.queue.suspects) > 0 {
		return errWrong
	}
	u, number := &in.queue.units, binary.LittleEndian.Uint64(payload)
	if number >= uint64(len(u.pages)) || u.pages[number] != nil {
		return errWrong
	}
	p := new(page)
	for i := range p {
		p[i] = binary.LittleEndian.Uint64(payload[8+8*i:])
		u.done += uint64(bits.OnesCount64(p[i]))
	}
	u.pages[number], u.owned[number] = p, true
	for unit := int64(in.queue.Units); unit < int64((number+1)*pageUnits); unit++ {
		if u.has(unit) {
			return errWrong
		}
	}
	return nil
}

func (in *restorer) worker(payload []byte) error {
	w := &worker{era: in.s.era}
	if err := decode(payload, w); err != nil {
		return err
	}
	q := in.queue
	if q == nil {
		return errWrong
	}
	if err := first(checkWorker(w.ID), must(q.workers[w.ID] == nil, errTwice), in.mayHold(q, w)); err != nil {
		return err
	}
	q.workers[w.ID] = w
	in.s.workers++
	if !w.Left {
		q.here++
	}
	return must(len(q.workers) <= MaxWorkers && in.s.workers <= MaxAllWorkers, errMany)
}

// mayHold counts what w holds.
func (in *restorer) mayHold(q *queue, w *worker) error {
	if w.Node != "" || !w.Left {
		if err := checkID(w.Node); err != nil {
			return err
		}
	}
	if w.Unit == -1 {
		return nil
	}
	n, _ := in.s.nodes.get(w.Node)
	if w.Unit < 0 || w.Unit >= int64(q.Units) || w.Left || !n.Up || q.holders[w.Unit] >= 2 {
		return errWrong
	}
	q.holders[w.Unit]++
	return nil
}

func (in *restorer) setting(payload []byte) error {
	var frame settingFrame
	if err := decode(payload, &frame); err != nil {
		return err
	}
	set := Setting{Key: frame.Key, Value: frame.Value}
	_, twice := in.s.settings.get(frame.Key)
	if err := first(set.check(), must(!twice && frame.Value != "", errTwice)); err != nil {
		return err
	}
	in.s.settings.set(frame.Key, frame.Value)
	return must(in.s.settings.len() <= MaxSettings, errMany)
}
