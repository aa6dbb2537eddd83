package state

import (
	"encoding/binary"
	"math/bits"

	"rankfs/meta"
)

func (*queues) commands() []command {
	return []command{
		{kind: 15, blank: blank[OpenQueue], by: members},
		{kind: 16, blank: blank[TakeUnit], by: owns},
		{kind: 17, blank: blank[LeaveQueue], by: owns},
		{kind: 18, blank: blank[ResetQueue], by: members},
		{kind: 19, blank: blank[DropQueue], by: operators},
	}
}

func (t *queues) share() sharer { return &queues{table: t.table.share()} }

func (t *queues) over() bool {
	return t.len() > MaxQueues || t.units > MaxAllUnits || t.readers > MaxAllReaders || t.suspects > MaxAllSuspects
}

func (t *queues) write(f *frameWriter) {
	for _, q := range sorted(&t.table) {
		q.write(f)
	}
}

func (q *queue) write(f *frameWriter) {
	f.json('q', q.Queue)
	for i, p := range q.units.pages {
		if p == nil {
			continue
		}
		b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+pageUnits/8), uint64(i))
		for _, word := range p {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
		f.frame('u', b)
	}
	for _, r := range q.suspected() {
		f.json('b', r)
	}
	for _, w := range sorted(&table[string, *reader]{m: q.readers}) {
		f.json('w', w)
	}
}

// A queueRestorer restores queues: the frame of each, then those of its pages of
// units, of its suspects and of its readers.
type queueRestorer struct {
	*restorer
	queue *queue // that was read last
}

func (*queues) restore(in *restorer) frames {
	r := &queueRestorer{restorer: in}
	return frames{'q': each(r.readQueue), 'u': r.units, 'b': each(r.suspect), 'w': each(r.reader)}
}

func (in *queueRestorer) readQueue(info Queue) error {
	open := OpenQueue{View: info.View, Units: info.Units, Policy: info.Policy}
	if err := first(open.check(), in.sequence(info.Sequence)); err != nil {
		return err
	}
	v, err := checkView(info.View)
	if err != nil {
		return err
	}
	if _, err := in.s.datasets().at(v.Dataset, info.Generation); err != nil {
		return err
	}
	_, twice := in.s.queues().get(info.View)
	if err := first(must(!twice, errTwice), must(info.UID == 0 || in.s.version() >= Signed, errWrong), must(info.Done == 0 && info.Held == 0 && info.Readers == 0 && info.Aside == 0, errWrong)); err != nil {
		return err
	}
	in.queue = newQueue(info, v.Ranks, in.s.era)
	in.s.queues().add(in.queue)
	return nil
}

func (in *queueRestorer) units(payload []byte) error {
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

// suspect reads one of the queue before it, whose units came first.
func (in *queueRestorer) suspect(r Suspect) error {
	q := in.queue
	if q == nil || r.Unit < 0 || r.Unit >= int64(q.Units) || q.units.has(r.Unit) || len(r.By) == 0 || len(r.By) > MaxReturns {
		return errWrong
	}
	if _, twice := q.suspects[r.Unit]; twice {
		return errTwice
	}
	readers := make(map[string]bool)
	for _, by := range r.By {
		readers[by.Reader] = true
		known := by.Cause == Closed || by.Cause == Down || by.Cause == Removal
		if err := first(checkReader(by.Reader), checkID(by.Node), must(known && by.Rank < meta.MaxRanks, errWrong)); err != nil {
			return err
		}
	}
	q.suspects[r.Unit] = r.By
	if isAside(r.By) {
		q.aside++
	}
	in.s.queues().suspects++
	return first(must(len(readers) == len(r.By), errTwice), must(len(q.suspects) <= MaxSuspects, errMany))
}

func (in *queueRestorer) reader(w reader) error {
	w.era = in.s.era
	q := in.queue
	if q == nil {
		return errWrong
	}
	if err := first(checkReader(w.ID), must(q.readers[w.ID] == nil, errTwice), in.mayHold(q, &w)); err != nil {
		return err
	}
	q.readers[w.ID] = &w
	in.s.queues().readers++
	if !w.Left {
		q.here++
	}
	return must(len(q.readers) <= MaxReaders, errMany)
}

// mayHold counts what w holds.
func (in *queueRestorer) mayHold(q *queue, w *reader) error {
	if w.Node != "" || !w.Left {
		if err := checkID(w.Node); err != nil {
			return err
		}
	}
	if w.Unit == -1 {
		return nil
	}
	n, _ := in.s.nodes().get(w.Node)
	if w.Unit < 0 || w.Unit >= int64(q.Units) || w.Left || !n.Up || q.holders[w.Unit] >= 2 {
		return errWrong
	}
	q.holders[w.Unit]++
	return nil
}
