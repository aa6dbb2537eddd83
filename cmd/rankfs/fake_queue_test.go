package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// Queues are two if there are datasets: that of train is half done, with some set
// aside until it is begun again, and that of its next epoch is done.
func (n *fakeNode) Queues() []control.Queue {
	if len(n.Datasets()) == 0 {
		return []control.Queue{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	half := control.Queue{
		ViewName: viewNamed("train"), Policy: "flow", Batches: 6256, Done: 3000, Leased: 10, Waiting: 3221,
		SetAside: 25, Readers: 10, Opened: epoch.Add(time.Hour), Resets: n.mu.resets,
	}
	if n.mu.resets > 0 {
		half.Waiting, half.SetAside = 3246, 0
	}
	return []control.Queue{half, {
		ViewName: viewNamed("train@epoch=1"), Policy: "probability", Batches: 1, Done: 1,
		Opened: epoch.Add(2 * time.Hour),
	}}
}

func (n *fakeNode) queue(name string) (control.Queue, error) {
	for _, q := range n.Queues() {
		if q.View == name || q.Full == name {
			return q, nil
		}
	}
	if _, options, _ := meta.SplitView(name); options == "odd" {
		return control.Queue{}, fmt.Errorf("view option %q %w: use key=value, each key once", options, meta.ErrInvalid)
	}
	return control.Queue{}, fmt.Errorf("queue of %s %w: no rank has read it yet", name, meta.ErrNotExist)
}

func (n *fakeNode) Queue(name string) (control.QueueDetail, error) {
	q, err := n.queue(name)
	d := control.QueueDetail{Queue: q, Nodes: []control.QueueNode{}, Leases: []control.Lease{}, AsideBatches: []control.AsideBatch{}}
	if err != nil || q.Done == q.Batches {
		return d, err
	}
	d.Nodes = []control.QueueNode{
		{Host: "node1", Readers: 6, Leased: 6, Read: 2000, Seconds: 1000.5},
		{Host: "node2", Readers: 4, Leased: 4},
	}
	given := func(batch, times int) control.AsideBatch {
		b := control.AsideBatch{Batch: fmt.Sprintf("rank-%d/batch-%06d", batch%8, batch/8)}
		for i := range times {
			b.By = append(b.By, control.Giver{
				Rank: uint64(i), Host: "node2", At: epoch.Add(time.Hour + time.Duration(i)*time.Minute),
				Cause: []string{"closed", "down", "removed"}[i%3],
			})
		}
		return b
	}
	for i := range 10 {
		d.Leases = append(d.Leases, control.Lease{
			Batch: given(500+i, 0).Batch, Rank: uint64(i), Host: "node1", Since: epoch.Add(2*time.Hour + time.Duration(i)*time.Minute),
		})
	}
	for i := range int(q.SetAside) {
		d.AsideBatches = append(d.AsideBatches, given(7+100*i, 4))
	}
	d.Tried = []control.AsideBatch{given(3, 1)}
	return d, nil
}

// QueuePolicy is flow until it is changed.
func (n *fakeNode) QueuePolicy(_ context.Context, r control.PolicyRequest) (control.Policy, error) {
	names := []string{"flow", "probability"}
	if r.Name != "" && !slices.Contains(names, r.Name) {
		return control.Policy{}, fmt.Errorf("policy %q %w: use flow or probability", r.Name, meta.ErrInvalid)
	}
	if err := n.led(); err != nil && r.Name != "" {
		return control.Policy{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.queuePolicy = cmp.Or(r.Name, n.mu.queuePolicy, "flow")
	return control.Policy{Name: n.mu.queuePolicy, Names: names}, nil
}

func (n *fakeNode) DropQueue(_ context.Context, name string) error {
	_, err := n.queue(name)
	return err
}

func (n *fakeNode) ResetQueue(_ context.Context, r control.ResetRequest) (control.Queue, error) {
	q, err := n.queue(r.Name)
	if err == nil && r.SetAside && q.SetAside == 0 {
		err = fmt.Errorf("reset queue of %s %w: no batch of it is set aside", r.Name, meta.ErrInvalid)
	}
	if err == nil && strings.HasPrefix(n.config.Listen, "lost") {
		err = n.led()
	}
	if err != nil {
		return control.Queue{}, err
	}
	n.mu.Lock()
	n.mu.resets++
	n.mu.Unlock()
	q, err = n.queue(r.Name)
	if !r.SetAside {
		q.Done, q.Leased, q.Waiting = 0, 0, q.Batches
	}
	return q, err
}
