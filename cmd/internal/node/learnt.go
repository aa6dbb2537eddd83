package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
	"rankfs/meta/durable"
)

// Learnt are the traces that are kept for datasets, in this node's state directory,
// a file for each. Other nodes have their own: readers differ from node to node.
type learnt struct {
	dir      string
	teaching sync.Mutex // before mu: who is last knows best

	// One change at a time, the writing of the file included: they are made by
	// hand.
	mu struct {
		sync.Mutex
		of      map[string]lesson // by dataset
		damaged []error           // why files were set aside
	}
}

// A lesson is what was learnt for a dataset.
type lesson struct {
	trace trace.Trace
	graph *trace.Graph
	when  time.Time
}

// mostLearnt bounds the files, and mostLearntFile each of them.
const (
	mostLearnt     = 256
	mostLearntFile = 1 << 20
	learntSuffix   = ".trace"
)

// open reads what was learnt. A file that is not what was written is set aside.
func (l *learnt) open(state string) error {
	l.dir, l.mu.of = filepath.Join(state, "traces"), make(map[string]lesson)
	files, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what was learnt: %w", err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), learntSuffix)
		if !ok || meta.CheckName(name) != nil || len(l.mu.of) == mostLearnt {
			continue
		}
		if err := l.read(name); err != nil {
			return fmt.Errorf("what was learnt: %w", err)
		}
	}
	return nil
}

func (l *learnt) path(dataset string) string { return filepath.Join(l.dir, dataset+learntSuffix) }

func (l *learnt) read(dataset string) error {
	path := l.path(dataset)
	text, err := readBounded(path, mostLearntFile)
	if err != nil {
		return err
	}
	t, err := decodeLearnt(string(text))
	if err == nil {
		info, err := os.Stat(path)
		if err == nil {
			l.mu.of[dataset] = lesson{t, t.Graph(), info.ModTime()}
		}
		return err
	}
	aside := strings.TrimSuffix(path, learntSuffix) + ".damaged"
	l.mu.damaged = append(l.mu.damaged, fmt.Errorf("what was learnt for %s is not known any more: %s %w: %w; learn it again with: rankfs trace learn",
		dataset, aside, meta.ErrCorrupt, err))
	return os.Rename(path, aside)
}

func encodeLearnt(t *trace.Trace) string {
	text := t.Text(false)
	return fmt.Sprintf("%ssum %016x\n", text, xxhash.Sum64String(text))
}

// decodeLearnt refuses what encodeLearnt would not write, or of which nothing can
// be learnt.
func decodeLearnt(text string) (t trace.Trace, err error) {
	body := text[:max(0, len(text)-len("sum 0123456789abcdef\n"))]
	if t, err = trace.Parse(body); err != nil {
		return t, err
	}
	switch {
	case encodeLearnt(&t) != text:
		return t, errors.New("it does not match its checksum")
	case t.Graph() == nil:
		return t, errors.New("nothing is in it")
	}
	return t, nil
}

// find is what was learnt for a dataset.
func (l *learnt) find(dataset string) (found lesson, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok = l.mu.of[dataset]
	return found, ok
}

func (l *learnt) keep(dataset string, t trace.Trace) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.mu.of[dataset]; !again && len(l.mu.of) >= mostLearnt {
		return fmt.Errorf("learn for %s %w: something is kept for %d datasets already; see: rankfs trace ls", dataset, meta.ErrNoSpace, mostLearnt)
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("learn for %s: %w", dataset, err)
	}
	if err := durable.WriteFile(l.path(dataset), []byte(encodeLearnt(&t)), 0o600); err != nil {
		return fmt.Errorf("learn for %s: %w", dataset, err)
	}
	l.mu.of[dataset] = lesson{t, t.Graph(), time.Now()}
	return nil
}

func (l *learnt) remove(dataset string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mu.of[dataset]; !ok {
		return fmt.Errorf("trace for %s %w; see: rankfs trace ls", dataset, meta.ErrNotExist)
	}
	if err := os.Remove(l.path(dataset)); err != nil {
		return fmt.Errorf("forget the trace for %s: %w", dataset, err)
	}
	delete(l.mu.of, dataset)
	return durable.SyncDir(l.dir)
}

// warnings are why what was learnt is not, if so.
func (l *learnt) warnings() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.mu.damaged {
		all = append(all, err.Error())
	}
	return all
}

// teach tells the cache what is known, by what datasets are called there.
func (n *Node) teach() {
	n.learnt.teaching.Lock()
	defer n.learnt.teaching.Unlock()
	of := make(map[string]*trace.Graph)
	for _, d := range n.catalog.List() {
		if l, ok := n.learnt.find(d.Name); ok {
			of[d.Version.Index.Fingerprint()] = l.graph
		}
	}
	n.cache.Learn(of)
}

// Traces are what is kept for datasets, by their names.
func (n *Node) Traces() []control.Trace {
	n.learnt.mu.Lock()
	all := make([]control.Trace, 0, len(n.learnt.mu.of))
	for dataset, l := range n.learnt.mu.of {
		all = append(all, l.describe(dataset))
	}
	n.learnt.mu.Unlock()
	for i := range all {
		all[i].View = n.called(all[i].View)
	}
	slices.SortFunc(all, func(a, b control.Trace) int { return cmp.Compare(a.Dataset, b.Dataset) })
	return all
}

// Trace is what is kept for a dataset, all of it.
func (n *Node) Trace(dataset string) (control.Trace, error) {
	l, ok := n.learnt.find(dataset)
	if !ok {
		return control.Trace{}, fmt.Errorf("trace for %s %w; see: rankfs trace ls", dataset, meta.ErrNotExist)
	}
	t := l.describe(dataset)
	t.View = n.called(t.View)
	t.Text = l.trace.Text(true)
	return t, nil
}

func (l *lesson) describe(dataset string) control.Trace {
	t := control.Trace{Dataset: dataset, View: l.trace.View, Rank: l.trace.Rank, Steps: l.trace.Steps, Opens: l.trace.Opens(), Learnt: l.when}
	for _, r := range l.graph.Reuses() {
		if t.Again == 0 && !math.IsInf(r.After, 1) {
			t.Again = r.After
		}
	}
	return t
}

// LearnTrace keeps what was opened of a view, or a text of that, for a dataset.
func (n *Node) LearnTrace(r control.LearnRequest) (control.Trace, error) {
	t, err := n.seen(r)
	if err != nil {
		return control.Trace{}, err
	}
	name, _, _ := meta.SplitView(r.View)
	name = cmp.Or(r.For, name)
	if _, err := n.catalog.Get(name); err != nil {
		return control.Trace{}, err
	}
	if t.Graph() == nil {
		return control.Trace{}, fmt.Errorf("step of %s that was opened twice %w: have the program go through it twice or more, then: rankfs trace learn %s", t.View, meta.ErrNotExist, r.View)
	}
	if err := n.learnt.keep(name, t); err != nil {
		return control.Trace{}, err
	}
	n.teach()
	n.config.Log.Info("trace learnt", "dataset", name, "view", t.View, "rank", t.Rank, "opens", t.Opens())
	return n.Trace(name)
}

// seen is the trace that is to be learnt: of the rank that opened most.
func (n *Node) seen(r control.LearnRequest) (best trace.Trace, err error) {
	if r.Text != "" {
		return trace.Parse(r.Text)
	}
	v, err := n.open(r.View)
	if err != nil {
		return best, err
	}
	for _, t := range n.cache.Traces() {
		if t.Plan == v.view.Load().ID() && t.Opens() > best.Opens() {
			best = t.Trace
		}
	}
	if best.Opens() == 0 {
		return best, fmt.Errorf("trace of %s %w: nothing of it was opened on this node lately; have the program read it, then: rankfs trace learn %[1]s", r.View, meta.ErrNotExist)
	}
	best.View = v.key
	return best, nil
}

// ForgetTrace ends what was learnt for a dataset.
func (n *Node) ForgetTrace(dataset string) error {
	if err := n.learnt.remove(dataset); err != nil {
		return err
	}
	n.teach()
	return nil
}
