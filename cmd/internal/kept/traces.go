package kept

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// traces reports what readers opened, and keeps some of it. The lock is held while the
// cache is told of all that is kept, so that the last call knows best; that of learnt is
// taken under it.
type traces struct {
	*shared
	learnt  learntTraces
	telling sync.Mutex
}

// tellCache gives the cache all traces, by the names that it has for datasets.
func (n *traces) tellCache() {
	n.telling.Lock()
	defer n.telling.Unlock()
	of := make(map[string]*trace.Graph)
	for _, d := range n.Catalog.List() {
		if l, ok := n.learnt.find(d.Name); ok {
			of[d.Version.Index.Fingerprint()] = l.graph
		}
	}
	n.cache.Learn(of)
}

// Traces are the traces that are kept, in the order of their datasets' names.
func (n *traces) Traces() []control.Trace {
	learnt := n.learnt.all()
	all := make([]control.Trace, 0, len(learnt))
	for dataset, l := range learnt {
		t := l.describe(dataset)
		t.ViewName = control.NameOf(n.Views.Called(t.View))
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b control.Trace) int { return cmp.Compare(a.Dataset, b.Dataset) })
	return all
}

// Trace is the whole trace that is kept for a dataset.
func (n *traces) Trace(dataset string) (control.Trace, error) {
	l, ok := n.learnt.find(dataset)
	if !ok {
		return control.Trace{}, fmt.Errorf("trace for %s %w; see: rankfs trace ls", dataset, meta.ErrNotExist)
	}
	t := l.describe(dataset)
	t.ViewName = control.NameOf(n.Views.Called(t.View))
	t.Text = l.trace.Text(true)
	return t, nil
}

func (l *learntTrace) describe(dataset string) control.Trace {
	t := control.Trace{Dataset: dataset, ViewName: control.NameOf(l.trace.View, l.trace.View), Rank: l.trace.Rank, Steps: l.trace.Steps, Opens: l.trace.Opens(), Learnt: l.when}
	for _, r := range l.graph.Reuses() {
		if t.Again == 0 && !math.IsInf(r.After, 1) {
			t.Again = r.After
		}
	}
	return t
}

// LearnTrace keeps the trace of a view, as seen here or given as text, for a dataset.
func (n *traces) LearnTrace(r control.LearnRequest) (control.Trace, error) {
	t, err := n.seen(r)
	if err != nil {
		return control.Trace{}, err
	}
	name, _, _ := meta.SplitView(r.View)
	name = cmp.Or(r.For, name)
	if err := n.foretells(cmp.Or(r.For, r.View)); err != nil {
		return control.Trace{}, err
	}
	if t.Graph() == nil {
		return control.Trace{}, fmt.Errorf("step of %s that was opened twice %w: have the program go through it twice or more, then: rankfs trace learn %s", t.View, meta.ErrNotExist, r.View)
	}
	d, err := n.Catalog.Get(name)
	if err != nil {
		return control.Trace{}, err
	}
	if err := n.registered.set(name, d.Created); err != nil {
		return control.Trace{}, err
	}
	if err := n.learnt.keep(name, t); err != nil {
		return control.Trace{}, err
	}
	n.tellCache()
	n.Log.Info("trace learnt", "dataset", name, "view", t.View, "rank", t.Rank, "opens", t.Opens())
	return n.Trace(name)
}

// seen is the trace that is to be learnt: of the rank that opened most.
func (n *traces) seen(r control.LearnRequest) (best trace.Trace, err error) {
	if r.Text != "" {
		return trace.Parse(r.Text)
	}
	v, err := n.Views.Open(r.View)
	if err != nil {
		return best, err
	}
	if err := n.foretells(r.View); err != nil {
		return best, err
	}
	for _, t := range n.cache.Traces() {
		if t.Series == v.Batches().ID() && t.Opens() > best.Opens() {
			best = t.Trace
		}
	}
	if best.Opens() == 0 {
		return best, fmt.Errorf("trace of %s %w: nothing of it was opened on this node lately; have the program read it, then: rankfs trace learn %[1]s", r.View, meta.ErrNotExist)
	}
	best.View = v.Key()
	return best, nil
}

// foretells is an error if a trace of the view would be of no use: traces say after how many
// opens a batch comes again, and the next epoch has other batches.
func (n *traces) foretells(view string) error {
	v, err := n.Views.Open(view)
	if err != nil || !v.Batches().Once() {
		return err
	}
	order := v.Asked().Order
	if order.Kind == meta.OrderNone {
		return meta.Worded(meta.ErrInvalid, "a trace does not help readers of %s: its batches are made of chunks, and it is those that are kept; learn of a view with batch=chunk", view)
	}
	return meta.Worded(meta.ErrInvalid, "a trace does not help readers of %s: with order=%s no epoch has the batches of another; learn of a view with order=none, or give a trace to: rankfs simulate %[1]s --trace FILE", view, order)
}

// forget is ForgetTrace, if there is one.
func (n *traces) forget(dataset string) error {
	if _, ok := n.learnt.find(dataset); !ok {
		return nil
	}
	return n.ForgetTrace(dataset)
}

// ForgetTrace drops the trace that is kept for a dataset.
func (n *traces) ForgetTrace(dataset string) error {
	if err := n.learnt.remove(dataset); err != nil {
		return err
	}
	n.tellCache()
	return nil
}
