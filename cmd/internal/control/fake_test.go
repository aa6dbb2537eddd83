package control_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rankfs/cmd/internal/control"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(askEnv); socket != "" {
		askAll(socket)
		return
	}
	goleak.VerifyTestMain(m)
}

// A fake is a Node whose long operations are one function.
type fake struct {
	work func(ctx context.Context, progress func(control.Progress)) error
	fail error
	got  got
}

// got is the last request. A call that its client has given up may be there still.
type got struct {
	mu sync.Mutex
	is any
}

func (g *got) set(is any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.is = is
}

func (g *got) last() any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

func (f *fake) Status() control.Status { return control.Status{PID: 7, Mount: "/mnt"} }

func (f *fake) All(context.Context) []control.NodeStatus {
	return []control.NodeStatus{{Member: control.Member{ID: "1"}, NodeSummary: &control.NodeSummary{Version: "v"}}, {Error: "away"}}
}

func (f *fake) Load(r control.LoadRequest) (control.Load, error) {
	f.got.set(r)
	return control.Load{Workers: 2, Jobs: []control.Job{{ViewName: named(r.Name), Ranks: []control.Rank{{Rank: 3}}}}}, f.fail
}

func (f *fake) Datasets() []control.Dataset { return []control.Dataset{{Name: "a"}, {Name: "b"}} }

func (f *fake) Dataset(name string) (control.Dataset, error) {
	return control.Dataset{Name: name}, f.fail
}

// named is how the fake names a view.
func named(view string) control.ViewName { return control.NameOf(view, view+"@epoch=0") }

func (f *fake) Explain(_ context.Context, r control.ExplainRequest) (control.Explanation, error) {
	return control.Explanation{ViewName: named(r.Name)}, f.fail
}

func (f *fake) Remove(string) error { return f.fail }

func (f *fake) do(ctx context.Context, progress func(control.Progress)) error {
	if f.work == nil {
		return f.fail
	}
	return f.work(ctx, progress)
}

func (f *fake) Create(ctx context.Context, r control.CreateRequest, p func(control.Progress)) (control.Dataset, error) {
	return control.Dataset{Name: r.Name, Source: r.Source, Ranks: r.Ranks}, f.do(ctx, p)
}

func (f *fake) Refresh(ctx context.Context, r control.RefreshRequest, p func(control.Progress)) (control.Dataset, error) {
	return control.Dataset{Name: r.Name}, f.do(ctx, p)
}

func (f *fake) Verify(ctx context.Context, name string, p func(control.Progress)) (control.Verification, error) {
	return control.Verification{Checksum: name}, f.do(ctx, p)
}

func (f *fake) Cluster() control.Cluster {
	lag := uint64(3)
	return control.Cluster{ID: "c", Self: "1", Leader: "2", Term: 4, Nodes: []control.Member{{ID: "1", Lag: &lag}, {ID: "2", Voter: true}}}
}

func (f *fake) CreateToken(ctx context.Context, r control.TokenRequest) (control.Token, error) {
	f.got.set(r)
	return control.Token{Token: "secret", Uses: r.Uses}, f.do(ctx, nil)
}

func (f *fake) Tokens() []control.TokenInfo {
	return []control.TokenInfo{{ID: "abc", Role: "member", Uses: 2, Used: 1}}
}

func (f *fake) DropToken(ctx context.Context, id string) error {
	f.got.set(id)
	return f.do(ctx, nil)
}

func (f *fake) DrainNode(ctx context.Context, r control.DrainRequest) error {
	f.got.set(r)
	return f.do(ctx, nil)
}

func (f *fake) RemoveNode(ctx context.Context, id string) error {
	f.got.set(id)
	return f.do(ctx, nil)
}

func (f *fake) PromoteNode(ctx context.Context, id string) (control.Promotion, error) {
	f.got.set(id)
	return control.Promotion{ID: id, Said: []string{"h"}, Needed: 2}, f.do(ctx, nil)
}

func (f *fake) Plan(ctx context.Context, r control.PlanRequest) (control.Survey, error) {
	f.got.set(r)
	return control.Survey{ViewName: named(r.View), Ranks: 1 << 20, Program: &control.Program{Curve: []control.Point{{Local: 1, Most: 2}}}}, f.do(ctx, nil)
}

func (f *fake) Queues() []control.Queue { return []control.Queue{{ViewName: named("d"), Batches: 9}} }

func (f *fake) Queue(name string) (control.QueueDetail, error) {
	batch := control.AsideBatch{Batch: "rank-0/batch-000007", By: []control.Giver{{Rank: 3, Cause: "closed"}}}
	return control.QueueDetail{
		Queue: control.Queue{ViewName: named(name)}, Nodes: []control.QueueNode{{Host: "h"}},
		Leases: []control.Lease{{Rank: 1}}, AsideBatches: []control.AsideBatch{batch},
	}, f.fail
}

func (f *fake) ResetQueue(ctx context.Context, r control.ResetRequest) (control.Queue, error) {
	f.got.set(r)
	return control.Queue{ViewName: named(r.Name), Resets: 2}, f.do(ctx, nil)
}

func (f *fake) DropQueue(ctx context.Context, name string) error {
	f.got.set(name)
	return f.do(ctx, nil)
}

func (f *fake) QueuePolicy(_ context.Context, r control.PolicyRequest) (control.Policy, error) {
	f.got.set(r)
	return control.Policy{Name: r.Name, Names: []string{"x", "y"}}, f.fail
}

func (f *fake) Policy(r control.PolicyRequest) (control.Policy, error) {
	f.got.set(r)
	return control.Policy{Name: r.Name, Names: []string{"a", "b"}}, f.fail
}

func (f *fake) PinCache(_ context.Context, r control.CachePinRequest) (control.CachePin, error) {
	f.got.set(r)
	return control.CachePin{ViewName: named(r.View), Tier: r.Tier, Kind: control.Chunks}, f.fail
}

func (f *fake) Cached() control.CacheList {
	return control.CacheList{Policy: "a", Views: []control.Cached{{ViewName: named("d"), RAM: control.Held{Batches: 3, Bytes: 1 << 40}}}}
}

func (f *fake) Evict(ctx context.Context, name string) (control.Eviction, error) {
	f.got.set(name)
	return control.Eviction{ViewName: named(name), Stayed: control.Held{Batches: 1}}, f.do(ctx, nil)
}

func (f *fake) Warm(ctx context.Context, r control.WarmRequest, p func(control.Progress)) (control.Warm, error) {
	f.got.set(r)
	return control.Warm{ViewName: named(r.View), All: 9, Ready: 8, NoRoom: "full"}, f.do(ctx, p)
}

func (f *fake) PoolJobs(context.Context) ([]control.PoolJob, error) {
	return []control.PoolJob{{Job: "j", UID: 7, Users: []string{"h"}}}, f.fail
}

func (f *fake) PoolJob(_ context.Context, u control.User, name string) (control.PoolJobDetail, error) {
	f.got.set(u)
	return control.PoolJobDetail{PoolJob: control.PoolJob{Job: name}, All: []control.PoolStage{{Stage: "s"}}}, f.fail
}

func (f *fake) PoolStage(_ context.Context, u control.User, name string) (control.PoolStageDetail, error) {
	f.got.set(u)
	return control.PoolStageDetail{PoolStage: control.PoolStage{Stage: name}, Waits: []control.PoolWait{{Part: "p"}}}, f.fail
}

func (f *fake) MakePool(ctx context.Context, u control.User, r control.PoolRequest) error {
	f.got.set([]any{u, r})
	return f.do(ctx, nil)
}

func (f *fake) SetQuota(ctx context.Context, u control.User, r control.PoolRequest) error {
	f.got.set([]any{u, r})
	return f.do(ctx, nil)
}

func (f *fake) SealStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	f.got.set(u)
	return control.PoolStage{Stage: name, State: "sealed"}, f.do(ctx, nil)
}

func (f *fake) ResetStage(ctx context.Context, u control.User, name string) (control.PoolStage, error) {
	f.got.set(u)
	return control.PoolStage{Stage: name, Resets: 1}, f.do(ctx, nil)
}

func (f *fake) DropPool(ctx context.Context, u control.User, name string) error {
	f.got.set([]any{u, name})
	return f.do(ctx, nil)
}

func (f *fake) Traces() []control.Trace { return []control.Trace{{Dataset: "d", Opens: 9}} }

func (f *fake) Trace(dataset string) (control.Trace, error) {
	return control.Trace{Dataset: dataset, Text: "text"}, f.fail
}

func (f *fake) LearnTrace(r control.LearnRequest) (control.Trace, error) {
	f.got.set(r)
	return control.Trace{Dataset: r.For, ViewName: named(r.View)}, f.fail
}

func (f *fake) ForgetTrace(dataset string) error {
	f.got.set(dataset)
	return f.fail
}

// start serves n until the test ends, and returns the socket.
func start(t *testing.T, n control.Node) string {
	t.Helper()
	return startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.Serve(ctx, l, n, control.Admin{}, slog.New(slog.DiscardHandler))
	})
}

func startWith(t *testing.T, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return socket
}
