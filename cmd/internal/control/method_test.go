package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

func TestEveryMethodReachesTheNode(t *testing.T) {
	ctx := t.Context()
	sent := []control.Progress{{Doing: "indexing", Bytes: 1, Total: 2}, {Doing: "indexing", Bytes: 2, Total: 2, Records: 9}}
	n := &fake{work: func(_ context.Context, progress func(control.Progress)) error {
		for _, p := range sent {
			progress(p)
		}
		return nil
	}}
	c := control.Dial(start(t, n))

	if s, err := c.Status(ctx); err != nil || !reflect.DeepEqual(s, n.Status()) {
		t.Errorf("Status() = %v, %v", s, err)
	}
	if all, err := c.All(ctx); err != nil || !reflect.DeepEqual(all, n.All(ctx)) {
		t.Errorf("All() = %v, %v", all, err)
	}
	if list, err := c.Datasets(ctx); err != nil || !reflect.DeepEqual(list, n.Datasets()) {
		t.Errorf("Datasets() = %v, %v", list, err)
	}
	if d, err := c.Dataset(ctx, "../odd name"); err != nil || d.Name != "../odd name" {
		t.Errorf("Dataset() = %v, %v", d, err)
	}
	if x, err := c.Explain(ctx, control.ExplainRequest{Name: "d@epoch=3"}); err != nil || x.View != "d@epoch=3" || x.Full == "" {
		t.Errorf("Explain() = %v, %v", x, err)
	}
	if err := c.Remove(ctx, "x"); err != nil {
		t.Errorf("Remove() = %v", err)
	}
	load := control.LoadRequest{Name: "d@ranks=2", Ranks: true}
	if l, err := c.Load(ctx, load); err != nil || n.got.last() != load || len(l.Jobs) != 1 || l.Jobs[0].View != "d@ranks=2" || l.Jobs[0].Ranks[0].Rank != 3 {
		t.Errorf("Load() = %+v, %v", l, err)
	}
	var got []control.Progress
	show := func(p control.Progress) { got = append(got, p) }
	request := control.CreateRequest{Name: "x", Source: "file:/x", Ranks: 1 << 40}
	if d, err := c.Create(ctx, request, show); err != nil || d.Name != "x" || d.Source != "file:/x" || d.Ranks != 1<<40 {
		t.Errorf("Create() = %v, %v", d, err)
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("progress %v, want %v", got, sent)
	}
	if d, err := c.Refresh(ctx, control.RefreshRequest{Name: "y"}, show); err != nil || d.Name != "y" {
		t.Errorf("Refresh() = %v, %v", d, err)
	}
	if v, err := c.Verify(ctx, "z", show); err != nil || v.Checksum != "z" {
		t.Errorf("Verify() = %v, %v", v, err)
	}
}

func TestEveryMethodOfAClusterReachesTheNode(t *testing.T) {
	ctx, n := t.Context(), &fake{}
	c := control.Dial(start(t, n))
	got := func(what string, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(n.got.last(), want) {
			t.Errorf("%s: the node got %+v, %v, want %+v", what, n.got.last(), err, want)
		}
	}

	if k, err := c.Cluster(ctx); err != nil || !reflect.DeepEqual(k, n.Cluster()) {
		t.Errorf("Cluster() = %+v, %v", k, err)
	}
	token, err := c.CreateToken(ctx, control.TokenRequest{Life: time.Hour, Uses: 3})
	got("CreateToken", control.TokenRequest{Life: time.Hour, Uses: 3}, err)
	if token.Token != "secret" || token.Uses != 3 {
		t.Errorf("CreateToken() = %+v", token)
	}
	if list, err := c.Tokens(ctx); err != nil || !reflect.DeepEqual(list, n.Tokens()) {
		t.Errorf("Tokens() = %+v, %v", list, err)
	}
	err = c.DropToken(ctx, "abc")
	got("DropToken", "abc", err)
	err = c.DrainNode(ctx, control.DrainRequest{Node: "n", Drain: true})
	got("DrainNode", control.DrainRequest{Node: "n", Drain: true}, err)
	err = c.RemoveNode(ctx, "../odd name")
	got("RemoveNode", "../odd name", err)
	promotion, err := c.PromoteNode(ctx, "n")
	got("PromoteNode", "n", err)
	if want := (control.Promotion{ID: "n", Said: []string{"h"}, Needed: 2}); !reflect.DeepEqual(promotion, want) {
		t.Errorf("PromoteNode() = %+v", promotion)
	}
	r := control.PlanRequest{View: "d@epoch=3", Settle: true, Weights: &control.Weights{Local: 1, Time: 2}}
	for i := range 10_000 { // a job of as many ranks, no two neighbours on one host
		r.Seats = append(r.Seats, control.Seat{Host: fmt.Sprint("node-", i%2), Ranks: 1})
	}
	p, err := c.Plan(ctx, r)
	got("Plan", r, err)
	if p.View != "d@epoch=3" || p.Ranks != 1<<20 || len(p.Program.Curve) != 1 {
		t.Errorf("Plan() = %+v", p)
	}
}

func TestEveryMethodOfQueuesReachesTheNode(t *testing.T) {
	ctx, n := t.Context(), &fake{}
	c := control.Dial(start(t, n))
	if list, err := c.Queues(ctx); err != nil || !reflect.DeepEqual(list, n.Queues()) {
		t.Errorf("Queues() = %+v, %v", list, err)
	}
	want, _ := n.Queue("d@epoch=3")
	if q, err := c.Queue(ctx, "d@epoch=3"); err != nil || !reflect.DeepEqual(q, want) {
		t.Errorf("Queue() = %+v, %v", q, err)
	}
	r := control.ResetRequest{Name: "d@epoch=3", SetAside: true}
	if q, err := c.ResetQueue(ctx, r); err != nil || q.View != r.Name || q.Resets != 2 || n.got.last() != r {
		t.Errorf("ResetQueue() = %+v, %v; the node got %+v", q, err, n.got.last())
	}
	if err := c.DropQueue(ctx, "d@epoch=3"); err != nil || n.got.last() != "d@epoch=3" {
		t.Errorf("DropQueue() = %v; the node got %+v", err, n.got.last())
	}
	policy := control.PolicyRequest{Name: "y"}
	if p, err := c.QueuePolicy(ctx, policy); err != nil || p.Name != "y" || len(p.Names) != 2 || n.got.last() != policy {
		t.Errorf("QueuePolicy() = %+v, %v; the node got %+v", p, err, n.got.last())
	}
	n.fail = meta.ErrNotExist
	if _, err := c.Queue(ctx, "d"); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("Queue() of nothing: %v", err)
	}
}

func TestEveryMethodOfTheCacheReachesTheNode(t *testing.T) {
	ctx, n := t.Context(), &fake{}
	c := control.Dial(start(t, n))
	got := func(what string, answer, want, request any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(answer, want) || !reflect.DeepEqual(n.got.last(), request) {
			t.Errorf("%s = %+v, %v; the node got %+v", what, answer, err, n.got.last())
		}
	}
	policy := control.PolicyRequest{Name: "b"}
	p, err := c.Policy(ctx, policy)
	got("Policy()", p, control.Policy{Name: "b", Names: []string{"a", "b"}}, policy, err)
	pin := control.CachePinRequest{View: "d@epoch=3", Tier: control.TierRAM}
	i, err := c.PinCache(ctx, pin)
	got("PinCache()", i, control.CachePin{ViewName: named("d@epoch=3"), Tier: "ram", Kind: "chunks"}, pin, err)
	list, err := c.Cached(ctx)
	got("Cached()", list, n.Cached(), pin, err)
	e, err := c.Evict(ctx, "../odd name")
	got("Evict()", e, control.Eviction{ViewName: named("../odd name"), Stayed: control.Held{Batches: 1}}, "../odd name", err)
	rank, seen := uint64(7), 0
	n.work = func(_ context.Context, progress func(control.Progress)) error {
		progress(control.Progress{Doing: "warming"})
		return nil
	}
	warm := control.WarmRequest{View: "d", Rank: &rank, Check: true}
	w, err := c.Warm(ctx, warm, func(control.Progress) { seen++ })
	got("Warm()", w, control.Warm{ViewName: named("d"), All: 9, Ready: 8, NoRoom: "full"}, warm, err)
	if seen != 1 {
		t.Errorf("%d times progress", seen)
	}
}

func TestEveryMethodOfThePoolReachesTheNode(t *testing.T) {
	ctx, n := t.Context(), &fake{}
	c := control.Dial(start(t, n))
	me := control.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Admin: true}
	got := func(what string, answer, want, request any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(answer, want) || !reflect.DeepEqual(n.got.last(), request) {
			t.Errorf("%s = %+v, %v; the node got %+v", what, answer, err, n.got.last())
		}
	}
	list, err := c.PoolJobs(ctx)
	got("PoolJobs()", list, []control.PoolJob{{Job: "j", UID: 7, Users: []string{"h"}}}, nil, err)
	j, err := c.PoolJob(ctx, "j")
	got("PoolJob()", j, control.PoolJobDetail{PoolJob: control.PoolJob{Job: "j"}, All: []control.PoolStage{{Stage: "s"}}}, me, err)
	d, err := c.PoolStage(ctx, "j/s")
	got("PoolStage()", d, control.PoolStageDetail{PoolStage: control.PoolStage{Stage: "j/s"}, Waits: []control.PoolWait{{Part: "p"}}}, me, err)
	r := control.PoolRequest{Name: "j/s", Spec: "maps=1"}
	got("MakePool()", nil, nil, []any{me, r}, c.MakePool(ctx, r))
	r = control.PoolRequest{Name: "j", Quota: 7}
	got("SetQuota()", nil, nil, []any{me, r}, c.SetQuota(ctx, r))
	s, err := c.SealStage(ctx, "j/s")
	got("SealStage()", s, control.PoolStage{Stage: "j/s", State: "sealed"}, me, err)
	s, err = c.ResetStage(ctx, "j/s")
	got("ResetStage()", s, control.PoolStage{Stage: "j/s", Resets: 1}, me, err)
	got("DropPool()", nil, nil, []any{me, "../odd name"}, c.DropPool(ctx, "../odd name"))
	n.fail = meta.ErrDenied
	if _, err := c.PoolJob(ctx, "j"); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("PoolJob() of another user's: %v", err)
	}
}

func TestEveryMethodOfTracesReachesTheNode(t *testing.T) {
	ctx, n := t.Context(), &fake{}
	c := control.Dial(start(t, n))
	if list, err := c.Traces(ctx); err != nil || !reflect.DeepEqual(list, n.Traces()) {
		t.Errorf("Traces() = %+v, %v", list, err)
	}
	if one, err := c.Trace(ctx, "d"); err != nil || one.Dataset != "d" || one.Text != "text" {
		t.Errorf("Trace() = %+v, %v", one, err)
	}
	r := control.LearnRequest{View: "d@epoch=3", Text: "rankfs trace 1", For: "e"}
	if one, err := c.LearnTrace(ctx, r); err != nil || one.Dataset != "e" || one.View != r.View || n.got.last() != r {
		t.Errorf("LearnTrace() = %+v, %v; the node got %+v", one, err, n.got.last())
	}
	if err := c.ForgetTrace(ctx, "d"); err != nil || n.got.last() != "d" {
		t.Errorf("ForgetTrace() = %v; the node got %+v", err, n.got.last())
	}
	n.fail = meta.ErrNotExist
	if _, err := c.Trace(ctx, "d"); !errors.Is(err, meta.ErrNotExist) {
		t.Errorf("Trace() of nothing: %v", err)
	}
}
