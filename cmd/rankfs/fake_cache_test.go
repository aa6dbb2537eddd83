package main

import (
	"context"
	"fmt"
	"strings"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

func (n *fakeNode) Policy(r control.PolicyRequest) (control.Policy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Name != "" {
		n.mu.policy = r.Name
	}
	return control.Policy{Name: n.policy(), Names: policy.Names()}, nil
}

// policy is that in use. mu is held.
func (n *fakeNode) policy() string {
	switch {
	case n.mu.policy != "":
		return n.mu.policy
	case n.config.CachePolicy != "":
		return n.config.CachePolicy
	}
	return policy.Names()[0]
}

// base is the dataset of a view; the chunks of one called chunks are kept.
func (n *fakeNode) base(view string) (kind string, err error) {
	name, options, _ := meta.SplitView(view)
	if options == "odd" {
		return "", fmt.Errorf("view option %q %w: use key=value, each key once", options, meta.ErrInvalid)
	}
	if _, err := n.find(name); err != nil {
		return "", err
	}
	if name == "chunks" {
		return control.Chunks, nil
	}
	return control.Batches, nil
}

func (n *fakeNode) PinCache(_ context.Context, r control.CachePinRequest) (control.CachePin, error) {
	kind, err := n.base(r.View)
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.mu.stays[r.View]
	switch {
	case err != nil:
		return control.CachePin{}, err
	case r.Tier == "" && was == "":
		return control.CachePin{}, fmt.Errorf("pin of %s %w", r.View, meta.ErrNoPin)
	}
	n.mu.stays[r.View] = r.Tier
	return control.CachePin{ViewName: viewNamed(r.View), Tier: r.Tier, Kind: kind, Was: was, Once: strings.Contains(r.View, "full")}, nil
}

func (n *fakeNode) Cached() control.CacheList {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := control.CacheList{Policy: n.policy(), Views: []control.Cached{}}
	if len(n.mu.sets) == 0 {
		return list
	}
	list.Views = []control.Cached{
		{ViewName: control.NameOf("chunks", "chunks"), Kind: control.Chunks, RAM: control.Held{Batches: 12, Bytes: 12 << 27}},
		{ViewName: viewNamed("train"), Kind: control.Batches, RAM: control.Held{Batches: 6256, Bytes: 781 << 20},
			Packed: control.Held{Batches: 100, Bytes: 5 << 20}, NVMe: control.Held{Batches: 3, Bytes: 3 << 20}, Pinned: n.mu.stays["train"]},
		{Kind: control.Batches, NVMe: control.Held{Batches: 40, Bytes: 40 << 20}},
	}
	list.Warming = []control.WarmUp{{ViewName: viewNamed("train@epoch=1"), Done: 1000, Of: 6256}}
	return list
}

func (n *fakeNode) Evict(_ context.Context, name string) (control.Eviction, error) {
	kind, err := n.base(name)
	e := control.Eviction{ViewName: viewNamed(name), AllViews: !strings.Contains(name, "@"), Kind: kind}
	switch {
	case strings.Contains(name, "epoch=9"):
	case kind == control.Chunks:
		e.Evicted = control.Held{Batches: 1, Bytes: 1 << 27}
	default:
		e.Evicted, e.Stayed = control.Held{Batches: 6240, Bytes: 770 << 20}, control.Held{Batches: 16, Bytes: 2 << 20}
	}
	return e, err
}

func (n *fakeNode) Warm(_ context.Context, r control.WarmRequest, progress func(control.Progress)) (control.Warm, error) {
	kind, err := n.base(r.View)
	if err == nil && kind == control.Chunks && r.Rank != nil {
		err = fmt.Errorf("warm up rank %d %w: the ranks of this view read parts of the same chunks", *r.Rank, meta.ErrInvalid)
	}
	if err == nil && strings.HasPrefix(r.View, "busy") {
		err = fmt.Errorf("warm up %s: it %w: 3 of 9 batches are done", r.View, meta.ErrBusy)
	}
	c := control.Warm{ViewName: viewNamed(r.View), Kind: kind, All: 6256, Ready: 6256, RAM: control.Made{Batches: 6000}, Packed: control.Made{Batches: 200}, NVMe: control.Made{Batches: 56}}
	if strings.HasPrefix(r.View, "away") {
		return control.Warm{ViewName: c.ViewName, Kind: kind, Elsewhere: true}, err
	}
	if r.Rank != nil {
		c.All, c.Ready, c.RAM.Batches, c.Packed.Batches, c.NVMe.Batches = 782, 782, 782, 0, 0
	}
	if err != nil || r.Check || r.Background {
		c.Ready, c.RAM.Batches, c.Begun = 6200, 5944, r.Background
		return c, err
	}
	work(progress, "warming", 781<<20)
	switch {
	case strings.Contains(r.View, "large"):
		c.Ready, c.RAM.Batches, c.Packed.Batches, c.NVMe.Batches = 100, 100, 0, 0
		c.NoRoom = "of the 1GiB of ram nothing may make way: ranks hold it"
	case strings.Contains(r.View, "epoch=1"):
		c.Open = true
	}
	return c, nil
}
