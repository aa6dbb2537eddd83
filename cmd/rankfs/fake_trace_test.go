package main

import (
	"cmp"
	"fmt"

	"rankfs/cache/trace"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// Traces are those of the datasets that are not called new.
func (n *fakeNode) Traces() []control.Trace {
	all := []control.Trace{}
	for _, d := range n.Datasets() {
		if t, err := n.Trace(d.Name); err == nil {
			t.Text = ""
			all = append(all, t)
		}
	}
	return all
}

func (n *fakeNode) Trace(dataset string) (control.Trace, error) {
	if _, err := n.find(dataset); err != nil || dataset == "new" {
		return control.Trace{}, fmt.Errorf("trace for %s %w; see: rankfs trace ls", dataset, meta.ErrNotExist)
	}
	seen := trace.Trace{View: dataset + "@epoch=0", Steps: 6256}
	for range 3 {
		for first := range uint64(8) {
			for s := first; s < seen.Steps; s += 8 {
				seen.Add(s)
			}
		}
	}
	return control.Trace{Dataset: dataset, ViewName: viewNamed(seen.View), Steps: seen.Steps, Opens: seen.Opens(), Again: 1, Learnt: epoch, Text: seen.Text(true)}, nil
}

func (n *fakeNode) LearnTrace(r control.LearnRequest) (control.Trace, error) {
	name, _, _ := meta.SplitView(r.View)
	if _, err := n.find(name); err != nil {
		return control.Trace{}, err
	}
	if name == "new" && r.Text == "" {
		return control.Trace{}, fmt.Errorf("trace of new %w: nothing of it was opened on this node lately; have the program read it, then: rankfs trace learn new", meta.ErrNotExist)
	}
	t := control.Trace{Dataset: cmp.Or(r.For, name), ViewName: viewNamed(r.View), Steps: 64, Opens: 192, Again: 1}
	if r.Text != "" {
		seen, err := trace.Parse(r.Text)
		t.Opens, t.Steps = seen.Opens(), seen.Steps
		return t, err
	}
	return t, nil
}

func (n *fakeNode) ForgetTrace(dataset string) error {
	_, err := n.Trace(dataset)
	return err
}
