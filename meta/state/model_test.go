package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A model is the rules once more, as plainly as they can be said: no sharing,
// no numbers for names, no bounds.
type model struct {
	now      int64
	sequence uint64
	cluster  state.Cluster
	tokens   map[string]state.Token
	nodes    map[string]state.Node
	removed  map[string]bool
	latest   uint64 // generation
	datasets map[string]state.Dataset
	holders  map[[2]string]bool // index and node
	jobs     map[string]map[uint64][2]string
	plans    map[string]state.Plan
	queues   map[string]*modelQueue
	settings map[string]string
	uses     map[string]int // of tokens, ever
}

type modelQueue struct {
	state.Queue
	finisher map[int64]string
	workers  map[string]*modelWorker
}

type modelWorker struct {
	state.Worker
	nonce uint64
	last  state.Stepped
}

func newModel() *model {
	return &model{
		tokens: make(map[string]state.Token), nodes: make(map[string]state.Node), removed: make(map[string]bool),
		datasets: make(map[string]state.Dataset), holders: make(map[[2]string]bool),
		jobs: make(map[string]map[uint64][2]string), plans: make(map[string]state.Plan),
		queues: make(map[string]*modelQueue), settings: make(map[string]string), uses: make(map[string]int),
	}
}

func datasetOf(view string) string {
	name, _, _ := meta.SplitView(view)
	return name
}

func jobName(dataset string, ranks uint64) string { return fmt.Sprintf("%s@%d", dataset, ranks) }

func (m *model) next() uint64 {
	m.sequence++
	return m.sequence
}

func (m *model) apply(c state.Command, at int64) (state.Result, error) {
	m.now = max(m.now, at)
	for h, t := range m.tokens {
		if t.Expires <= m.now {
			delete(m.tokens, h)
		}
	}
	switch c := c.(type) {
	case *state.Found:
		if m.cluster != (state.Cluster{}) && m.cluster != c.Cluster {
			return state.Result{}, meta.ErrExist
		}
		m.cluster = c.Cluster
	case *state.Token:
		return state.Result{}, m.token(c)
	case *state.DropToken:
		t, ok := m.tokens[c.Hash]
		if !ok {
			return state.Result{}, meta.ErrNotExist
		}
		t.Used = t.Uses
		m.tokens[c.Hash] = t
	case *state.Admit:
		return m.admit(c)
	case *state.Renew:
		return state.Result{}, m.change(c.ID, func(n *state.Node) { n.Serial = c.Serial })
	case *state.Move:
		return state.Result{}, m.change(c.ID, func(n *state.Node) { n.Host, n.Addr = c.Host, c.Addr })
	case *state.Drain:
		return state.Result{}, m.change(c.ID, func(n *state.Node) { n.Drained = c.Drained })
	case *state.Health:
		err := m.change(c.ID, func(n *state.Node) { n.Up = c.Up })
		if err == nil && !c.Up {
			m.giveBack(func(w *modelWorker) bool { return w.Node == c.ID })
		}
		return state.Result{}, err
	case *state.Remove:
		return state.Result{}, m.remove(c)
	case *state.PutDataset:
		return m.put(c)
	case *state.RemoveDataset:
		d, ok := m.datasets[c.Name]
		if ok && d.Generation != c.Generation {
			return state.Result{}, meta.ErrStale
		}
		delete(m.datasets, c.Name)
		m.forget(c.Name)
	case *state.Holding:
		return state.Result{}, m.holding(c)
	case *state.Claim:
		return m.claim(c)
	case *state.Pin:
		return m.pin(c)
	case *state.Unpin:
		delete(m.plans, c.View)
	case *state.OpenQueue:
		return m.open(c)
	case *state.Step:
		return m.step(c)
	case *state.LeaveQueue:
		if q := m.queues[c.View]; q != nil {
			w := q.workers[c.Worker]
			if w == nil {
				w = &modelWorker{Worker: state.Worker{ID: c.Worker, Unit: -1}}
				q.workers[c.Worker] = w
			}
			if !w.Left {
				w.Unit, w.Since, w.Left, w.Seen = -1, 0, true, m.now
			}
		}
	case *state.ResetQueue:
		q := m.queues[c.View]
		if q == nil {
			return state.Result{}, meta.ErrNotExist
		}
		if c.Run > q.Run {
			return state.Result{}, meta.ErrInvalid
		}
		if c.Run == q.Run {
			q.Run++
			clear(q.finisher)
			m.giveBack(func(w *modelWorker) bool { return q.workers[w.ID] == w })
		}
		return state.Result{Queue: q.info()}, nil
	case *state.DropQueue:
		delete(m.queues, c.View)
	case *state.Setting:
		m.settings[c.Key] = c.Value
		if c.Value == "" {
			delete(m.settings, c.Key)
		}
	}
	return state.Result{}, nil
}

func (m *model) token(c *state.Token) error {
	old, ok := m.tokens[c.Hash]
	switch {
	case ok && (old.Expires != c.Expires || old.Uses != c.Uses):
		return meta.ErrExist
	case !ok && c.Expires <= m.now:
		return meta.ErrInvalid
	case !ok:
		m.tokens[c.Hash] = *c
		m.uses[c.Hash] = 0
	}
	return nil
}

func (m *model) admit(c *state.Admit) (state.Result, error) {
	n, ok := m.nodes[c.Node.ID]
	switch {
	case ok && n.Key != c.Node.Key:
		return state.Result{}, meta.ErrExist
	case ok:
		return state.Result{Node: &n}, nil
	case m.cluster == state.Cluster{} || m.removed[c.Node.ID]:
		return state.Result{}, meta.ErrDenied
	case len(m.nodes) > 0:
		t, ok := m.tokens[c.TokenHash]
		if !ok || t.Used >= t.Uses {
			return state.Result{}, meta.ErrDenied
		}
		t.Used++
		m.uses[t.Hash]++
		m.tokens[t.Hash] = t
	}
	n = c.Node
	n.Up, n.Admitted = true, m.now
	m.nodes[n.ID] = n
	return state.Result{Node: &n}, nil
}

func (m *model) member(id string) error {
	switch _, ok := m.nodes[id]; {
	case ok:
		return nil
	case m.removed[id]:
		return meta.ErrDenied
	}
	return meta.ErrNotExist
}

func (m *model) change(id string, f func(*state.Node)) error {
	n := m.nodes[id]
	f(&n)
	if err := m.member(id); err != nil {
		return err
	}
	m.nodes[id] = n
	return nil
}

func (m *model) remove(c *state.Remove) error {
	if m.removed[c.ID] {
		return nil
	}
	if err := m.member(c.ID); err != nil {
		return err
	}
	if len(m.nodes) == 1 {
		return meta.ErrBusy
	}
	delete(m.nodes, c.ID)
	m.removed[c.ID] = true
	ofIt := func(w *modelWorker) bool { return w.Node == c.ID }
	m.giveBack(ofIt)
	for _, q := range m.queues {
		for _, w := range q.workers {
			w.Left = w.Left || ofIt(w)
		}
	}
	for h := range m.holders {
		if h[1] == c.ID {
			delete(m.holders, h)
		}
	}
	return nil
}

func (m *model) giveBack(which func(*modelWorker) bool) {
	for _, q := range m.queues {
		for _, w := range q.workers {
			if which(w) {
				w.Unit, w.Since = -1, 0
			}
		}
	}
}

func (m *model) put(c *state.PutDataset) (state.Result, error) {
	old, ok := m.datasets[c.Name]
	same := old.Index == c.Index && old.IndexBytes == c.IndexBytes && string(old.Record) == string(c.Record)
	if ok && same && slices.Contains([]uint64{0, old.Generation, old.Before}, c.Generation) {
		return state.Result{Generation: old.Generation}, nil
	}
	if ok && c.Generation == 0 {
		return state.Result{}, meta.ErrExist
	}
	if old.Generation != c.Generation {
		return state.Result{}, meta.ErrStale
	}
	m.latest++
	m.datasets[c.Name] = state.Dataset{
		Name: c.Name, Record: c.Record, Index: c.Index, IndexBytes: c.IndexBytes,
		Generation: m.latest, Before: old.Generation, Registered: m.now,
	}
	m.forget(c.Name)
	return state.Result{Generation: m.latest}, nil
}

// forget drops what was of the generation before, and copies of indexes that
// no dataset has.
func (m *model) forget(name string) {
	for _, ranks := range []uint64{2, 4} {
		delete(m.jobs, jobName(name, ranks))
	}
	for v := range m.plans {
		if datasetOf(v) == name {
			delete(m.plans, v)
		}
	}
	for v := range m.queues {
		if datasetOf(v) == name {
			delete(m.queues, v)
		}
	}
	for h := range m.holders {
		if !m.hasIndex(h[0]) {
			delete(m.holders, h)
		}
	}
}

func (m *model) hasIndex(index string) bool {
	for _, d := range m.datasets {
		if d.Index == index {
			return true
		}
	}
	return false
}

func (m *model) holding(c *state.Holding) error {
	if !c.Holds {
		delete(m.holders, [2]string{c.Index, c.ID})
		return nil
	}
	if err := m.member(c.ID); err != nil {
		return err
	}
	if !m.hasIndex(c.Index) {
		return meta.ErrNotExist
	}
	m.holders[[2]string{c.Index, c.ID}] = true
	return nil
}

func (m *model) current(name string, generation uint64) error {
	d, ok := m.datasets[name]
	if !ok {
		return meta.ErrNotExist
	}
	if d.Generation != generation {
		return meta.ErrStale
	}
	return nil
}

func (m *model) claim(c *state.Claim) (state.Result, error) {
	if err := m.current(c.Dataset, c.Generation); err != nil {
		return state.Result{}, err
	}
	if err := m.member(c.Node); err != nil {
		return state.Result{}, err
	}
	j := m.jobs[jobName(c.Dataset, c.Ranks)]
	if j == nil {
		j = make(map[uint64][2]string)
		m.jobs[jobName(c.Dataset, c.Ranks)] = j
		m.next()
	}
	if j[c.Rank][0] != c.Node {
		j[c.Rank] = [2]string{c.Node, j[c.Rank][0]}
	}
	return state.Result{Before: j[c.Rank][1]}, nil
}

func (m *model) pin(c *state.Pin) (state.Result, error) {
	name := datasetOf(c.View)
	if err := m.current(name, c.Generation); err != nil {
		return state.Result{}, err
	}
	p, ok := m.plans[c.View]
	if !ok {
		for _, run := range c.Nodes {
			if err := m.member(run.Node); err != nil && !m.removed[run.Node] {
				return state.Result{}, err
			}
		}
		p = state.Plan{
			View: c.View, Generation: c.Generation, Index: m.datasets[name].Index,
			Nodes: c.Nodes, Sequence: m.next(), Pinned: m.now,
		}
		m.plans[c.View] = p
	}
	return state.Result{Plan: &p}, nil
}

func (q *modelQueue) info() *state.Queue {
	i, held := q.Queue, make(map[int64]bool)
	i.Done = uint64(len(q.finisher))
	for _, w := range q.workers {
		if w.Unit >= 0 {
			held[w.Unit] = true
		}
		if !w.Left {
			i.Workers++
		}
	}
	i.Held = len(held)
	return &i
}

func (m *model) open(c *state.OpenQueue) (state.Result, error) {
	if err := m.current(datasetOf(c.View), c.Generation); err != nil {
		return state.Result{}, err
	}
	q := m.queues[c.View]
	if q == nil {
		q = &modelQueue{
			Queue: state.Queue{
				View: c.View, Generation: c.Generation, Units: c.Units, Policy: c.Policy, Seed: c.Seed,
				Sequence: m.next(), Opened: m.now,
			},
			finisher: make(map[int64]string), workers: make(map[string]*modelWorker),
		}
		m.queues[c.View] = q
	}
	return state.Result{Queue: q.info()}, nil
}

func (m *model) step(c *state.Step) (state.Result, error) {
	q := m.queues[c.View]
	if q == nil {
		return state.Result{}, meta.ErrNotExist
	}
	if err := m.member(c.Node); err != nil {
		return state.Result{}, err
	}
	w := q.workers[c.Worker]
	if w != nil {
		switch {
		case w.Left:
			return state.Result{}, meta.ErrDenied
		case w.Node != c.Node || w.Rank != c.Rank:
			return state.Result{}, meta.ErrInvalid
		case w.nonce == c.Nonce:
			return state.Result{Step: &w.last}, nil
		case c.Take >= 0 && !c.Finish && w.Unit >= 0:
			return state.Result{}, meta.ErrInvalid
		}
	}
	v, err := meta.View{}.With(c.View[len(datasetOf(c.View))+1:])
	if err != nil || c.Take >= int64(q.Units) || c.Rank >= v.Ranks {
		return state.Result{}, meta.ErrInvalid
	}
	if c.Take >= 0 && !m.nodes[c.Node].Up {
		return state.Result{}, meta.ErrUnavailable
	}
	if w == nil {
		w = &modelWorker{Worker: state.Worker{ID: c.Worker, Node: c.Node, Rank: c.Rank, Unit: -1}}
		q.workers[c.Worker] = w
	}
	r := state.Stepped{Unit: -1, Finished: -1}
	if c.Finish {
		r.Finish, r.Finished = state.Returned, w.Unit
		if w.Unit >= 0 {
			r.Finish = state.Lost
			w.Units++
			w.Busy += m.now - w.Since
			if q.finisher[w.Unit] == "" {
				q.finisher[w.Unit] = w.ID
				r.Finish = state.Finished
			}
		}
		w.Unit, w.Since = -1, 0
	}
	if c.Take >= 0 {
		holders := 0
		for _, other := range q.workers {
			if other.Unit == c.Take {
				holders++
			}
		}
		switch {
		case q.finisher[c.Take] != "":
			r.Refused = state.RefusedDone
		case holders >= 2:
			r.Refused = state.RefusedHeld
		default:
			r.Unit, w.Unit, w.Since = c.Take, c.Take, m.now
		}
	}
	w.Seen, w.nonce, w.last = m.now, c.Nonce, r
	return state.Result{Step: &r}, nil
}

// differ says where a machine is not what the model is.
func (m *model) differ(real *state.Machine) error {
	nodes := real.Nodes()
	if len(nodes) != len(m.nodes) {
		return fmt.Errorf("%d nodes, not %d", len(nodes), len(m.nodes))
	}
	for _, n := range nodes {
		if n != m.nodes[n.ID] {
			return fmt.Errorf("node %+v, not %+v", n, m.nodes[n.ID])
		}
	}
	live := 0
	for _, t := range m.tokens {
		if t.Used < t.Uses {
			live++
		}
	}
	tokens := real.Tokens()
	if len(tokens) != live {
		return fmt.Errorf("tokens %+v, not %+v", tokens, m.tokens)
	}
	for _, t := range tokens {
		if t != m.tokens[t.Hash] {
			return fmt.Errorf("token %+v, not %+v", t, m.tokens[t.Hash])
		}
	}
	for _, n := range nodes {
		for i := range 3 {
			has := slices.Contains(real.Holders(index(i)), n.ID)
			if has != m.holders[[2]string{index(i), n.ID}] {
				return fmt.Errorf("node %s has index %d: %v", n.ID, i, has)
			}
		}
	}
	if got := real.Settings(); len(got) != len(m.settings) || len(got) > 0 && !reflect.DeepEqual(got, m.settings) {
		return fmt.Errorf("settings %v, not %v", got, m.settings)
	}
	sum := real.Summary()
	if sum.Now != m.now || sum.Removed != len(m.removed) || sum.Cluster != m.cluster || sum.Jobs != len(m.jobs) {
		return fmt.Errorf("%+v, but %d, %d removed, %d jobs", sum, m.now, len(m.removed), len(m.jobs))
	}
	return errors.Join(m.differDatasets(real), m.differQueues(real))
}

func (m *model) differDatasets(real *state.Machine) error {
	datasets := real.Datasets()
	if len(datasets) != len(m.datasets) {
		return fmt.Errorf("%d datasets, not %d", len(datasets), len(m.datasets))
	}
	for _, d := range datasets {
		if !reflect.DeepEqual(d, m.datasets[d.Name]) {
			return fmt.Errorf("dataset %+v, not %+v", d, m.datasets[d.Name])
		}
		for _, ranks := range []uint64{2, 4} {
			job := m.jobs[jobName(d.Name, ranks)]
			claims := real.Claims(d.Name, ranks)
			if (job != nil) != (claims != nil) {
				return fmt.Errorf("claims %v, not %v", claims, job)
			}
			for rank, node := range claims.Nodes() {
				if node != job[uint64(rank)][0] {
					return fmt.Errorf("claims %v, not %v", claims, job)
				}
			}
		}
	}
	if n := real.Summary().Plans; n != len(m.plans) {
		return fmt.Errorf("%d plans, not %d", n, len(m.plans))
	}
	for v, want := range m.plans {
		if p, ok := real.Plan(v); !ok || !reflect.DeepEqual(p, want) {
			return fmt.Errorf("plan %+v, not %+v", p, want)
		}
	}
	return nil
}

func (m *model) differQueues(real *state.Machine) error {
	queues := real.Queues()
	if len(queues) != len(m.queues) {
		return fmt.Errorf("%d queues, not %d", len(queues), len(m.queues))
	}
	for _, info := range queues {
		q := m.queues[info.View]
		got, ok := real.QueueState(info.View)
		if !ok || got.Queue != info || info != *q.info() {
			return fmt.Errorf("queue %+v, not %+v", info, q.info())
		}
		if len(got.Workers) != len(q.workers) {
			return fmt.Errorf("workers %+v", got.Workers)
		}
		for _, w := range got.Workers {
			if w != q.workers[w.ID].Worker {
				return fmt.Errorf("worker %+v, not %+v", w, q.workers[w.ID].Worker)
			}
		}
		for unit := range int64(info.Units) {
			if isDone(got.Done, unit) != (q.finisher[unit] != "") {
				return fmt.Errorf("unit %d of %s", unit, info.View)
			}
		}
	}
	return nil
}

func isDone(bitmap []uint64, unit int64) bool { return bitmap[unit/64]&(1<<(unit%64)) != 0 }

// anyCommand draws from pools so small that commands meet.
func anyCommand(t *rapid.T, m *model) state.Command {
	one := func(label string, most int) int { return rapid.IntRange(1, most).Draw(t, label) }
	node := func() string { return id(one("node", 4)) }
	hash := func() string { return index(one("token", 2)) }
	dataset := func() string { return rapid.SampledFrom([]string{"d", "e"}).Draw(t, "dataset") }
	generation := func(name string) uint64 {
		if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
			return rapid.Uint64Range(0, m.latest+1).Draw(t, "generation")
		}
		return m.datasets[name].Generation
	}
	ranks := func() uint64 { return uint64(2 * one("ranks", 2)) }
	view := func() string {
		return fmt.Sprintf("%s@epoch=%d,ranks=%d,seed=0,order=full,step=1024,tail=keep,assign=local", dataset(), one("epoch", 2), ranks())
	}
	worker := func() string { return fmt.Sprint("w", one("worker", 4)) }
	flag := func() bool { return rapid.Bool().Draw(t, "flag") }
	step := func() state.Command {
		n := one("worker", 5)
		v := view()
		if len(m.queues) > 0 && flag() {
			v = rapid.SampledFrom(sortedKeys(m.queues)).Draw(t, "queue")
		}
		return &state.Step{
			View: v, Worker: fmt.Sprint("w", n), Node: id(1 + n%3), Rank: uint64(n % 2), Finish: flag(),
			Take: rapid.Int64Range(-1, 4).Draw(t, "unit"), Nonce: rapid.Uint64Range(0, 5).Draw(t, "nonce"),
		}
	}
	switch k := one("kind", 30); k {
	case 1:
		return &state.Found{Cluster: state.Cluster{ID: fmt.Sprint(one("id", 2)), CA: "ca"}}
	case 2:
		return &state.Token{Hash: hash(), Expires: m.now + int64(one("life", 3))*100, Uses: one("uses", 3)}
	case 3:
		return &state.DropToken{Hash: hash()}
	case 4, 5, 6:
		n := nodeOf(one("node", 4))
		if one("other key", 5) == 1 {
			n.Key = "another"
		}
		return &state.Admit{TokenHash: hash(), Node: n}
	case 7:
		return &state.Renew{ID: node(), Serial: fmt.Sprint(one("serial", 3))}
	case 8:
		return &state.Move{ID: node(), Host: "h", Addr: fmt.Sprint("h:", one("port", 3))}
	case 9:
		return &state.Drain{ID: node(), Drained: flag()}
	case 10:
		if one("remove", 4) == 1 {
			return &state.Remove{ID: node()}
		}
		return &state.Health{ID: node(), Up: true}
	case 11, 12:
		return &state.Health{ID: node(), Up: flag()}
	case 13, 14:
		name := dataset()
		record := json.RawMessage(fmt.Sprintf(`{"r":%d}`, one("record", 2)))
		return &state.PutDataset{Name: name, Record: record, Index: index(one("index", 2)), Generation: generation(name)}
	case 15:
		name := dataset()
		return &state.RemoveDataset{Name: name, Generation: generation(name)}
	case 16:
		return &state.Holding{ID: node(), Index: index(one("index", 2)), Holds: flag()}
	case 17, 18:
		name, ranks := dataset(), ranks()
		return &state.Claim{
			Dataset: name, Generation: generation(name), Ranks: ranks,
			Rank: rapid.Uint64Range(0, ranks-1).Draw(t, "rank"), Node: node(),
		}
	case 19, 20:
		v := view()
		parsed, _ := meta.View{}.With(v[len(datasetOf(v))+1:])
		nodes := state.RunsOf(rapid.SliceOfN(rapid.Custom(func(*rapid.T) string { return node() }), int(parsed.Ranks), int(parsed.Ranks)).Draw(t, "nodes"))
		return &state.Pin{View: v, Generation: generation(datasetOf(v)), Nodes: nodes}
	case 21:
		return &state.Unpin{View: view()}
	case 22, 23:
		v := view()
		return &state.OpenQueue{View: v, Generation: generation(datasetOf(v)), Units: uint64(one("units", 5)), Policy: "flow"}
	case 24:
		return &state.LeaveQueue{View: view(), Worker: worker()}
	case 25:
		return &state.ResetQueue{View: view(), Run: rapid.Uint64Range(0, 2).Draw(t, "run")}
	case 26:
		if one("drop", 4) == 1 {
			return &state.DropQueue{View: view()}
		}
		return &state.Setting{Key: fmt.Sprint("k", one("key", 2)), Value: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "value")}
	}
	return step()
}

// Random commands: the machine does what the model does; each command twice
// changes nothing; a second machine, which goes through snapshots, is equal;
// a snapshot stays what it is; and what must always hold, holds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, one, other := newModel(), state.New(), state.New()
		var applied, generation uint64
		begin := func(c state.Command) { step(t, m, one, other, &applied, c, m.now+1) }
		if rapid.Bool().Draw(t, "founded") {
			begin(&state.Found{Cluster: state.Cluster{ID: "1", CA: "ca"}})
			begin(&state.Token{Hash: index(1), Expires: 1 << 40, Uses: 3})
			for n := range 3 {
				begin(&state.Admit{TokenHash: index(1), Node: nodeOf(n + 1)})
			}
			begin(&state.PutDataset{Name: "d", Record: json.RawMessage("1"), Index: index(1)})
			begin(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 5, Policy: "flow"})
		}
		var kept *state.Snapshot
		var bytesThen []byte
		for range rapid.IntRange(1, 80).Draw(t, "commands") {
			c := anyCommand(t, m)
			at := m.now + rapid.Int64Range(-50, 50).Draw(t, "passes")
			step(t, m, one, other, &applied, c, at)
			if m.latest < generation {
				t.Fatal("generations go back")
			}
			generation = m.latest
			if rapid.IntRange(0, 9).Draw(t, "snapshot") == 0 {
				other = through(t, other)
			}
			if rapid.IntRange(0, 9).Draw(t, "keep") == 0 {
				kept = snapshot(t, one)
				bytesThen = written(t, kept)
			}
		}
		if kept != nil && !bytes.Equal(written(t, kept), bytesThen) {
			t.Fatal("a snapshot has changed")
		}
	})
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// through is the machine that a snapshot of m is read as.
func through(t fataler, m *state.Machine) *state.Machine {
	t.Helper()
	data := written(t, snapshot(t, m))
	read, err := state.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, written(t, snapshot(t, read))) || read.Hash() != m.Hash() {
		t.Fatal("a snapshot of what was read from a snapshot differs from it")
	}
	return read
}

func snapshot(t fataler, m *state.Machine) *state.Snapshot {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func written(t fataler, s *state.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := s.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", b.Len(), n, err)
	}
	return b.Bytes()
}

func step(t *rapid.T, m *model, one, other *state.Machine, applied *uint64, c state.Command, at int64) {
	t.Helper()
	c.Stamp(at)
	data, err := state.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := m.apply(c, at)
	*applied++
	got, err := one.Apply(*applied, data)
	if !errors.Is(err, wantErr) || !reflect.DeepEqual(got, want) && wantErr == nil {
		t.Fatalf("%T%+v\ngot  %s, %v\nwant %s, %v", c, c, text(got), err, text(want), wantErr)
	}
	if err := m.differ(one); err != nil {
		t.Fatalf("after %T%+v: %v", c, c, err)
	}
	mustHold(t, m, one)
	hash := one.Hash()
	if r, err := other.Apply(*applied, data); text(r) != text(got) || fmt.Sprint(err) != fmt.Sprint(err) || other.Hash() != hash {
		t.Fatalf("after %T%+v another machine is another: %v", c, c, err)
	}
	*applied++
	for _, m := range []*state.Machine{one, other} {
		if r, again := m.Apply(*applied, data); text(r) != text(got) || !errors.Is(again, wantErr) || m.Hash() != hash {
			t.Fatalf("%T%+v twice: first %s, %v, then %s, %v", c, c, text(got), err, text(r), again)
		}
	}
}

func text(r state.Result) string {
	b, _ := json.Marshal(r)
	return string(b)
}

// mustHold are the invariants of a state, as far as they can be seen.
func mustHold(t *rapid.T, model *model, m *state.Machine) {
	t.Helper()
	for _, info := range m.Queues() {
		q, _ := m.QueueState(info.View)
		holders := make(map[int64]int)
		for _, w := range q.Workers {
			if w.Unit < 0 {
				continue
			}
			n, ok := m.Node(w.Node)
			if holders[w.Unit]++; holders[w.Unit] > 2 || !ok || !n.Up || w.Left {
				t.Fatalf("worker %+v, node %+v", w, n)
			}
		}
		if d, ok := m.Dataset(datasetOf(q.View)); !ok || d.Generation != q.Generation {
			t.Fatalf("queue %+v of dataset %+v", q, d)
		}
	}
	for hash, used := range model.uses {
		if token, ok := model.tokens[hash]; ok && used > token.Uses {
			t.Fatalf("token %+v was used %d times", token, used)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
