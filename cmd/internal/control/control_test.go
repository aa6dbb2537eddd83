package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is a Node whose long operations are one function.
type fake struct {
	work func(ctx context.Context, progress func(control.Progress)) error
	fail error
	got  any // the last request
}

func (f *fake) Status() control.Status { return control.Status{PID: 7, Mount: "/mnt"} }

func (f *fake) Load(r control.LoadRequest) (control.Load, error) {
	f.got = r
	return control.Load{Workers: 2, Jobs: []control.Job{{Name: r.Name, Ranks: []control.Rank{{Rank: 3}}}}}, f.fail
}

func (f *fake) Datasets() []control.Dataset { return []control.Dataset{{Name: "a"}, {Name: "b"}} }

func (f *fake) Dataset(name string) (control.Dataset, error) {
	return control.Dataset{Name: name}, f.fail
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
	f.got = r
	return control.Token{Token: "secret", Uses: r.Uses}, f.do(ctx, nil)
}

func (f *fake) DrainNode(ctx context.Context, r control.DrainRequest) error {
	f.got = r
	return f.do(ctx, nil)
}

func (f *fake) RemoveNode(ctx context.Context, id string) error {
	f.got = id
	return f.do(ctx, nil)
}

func (f *fake) Plan(ctx context.Context, r control.PlanRequest) (control.Plan, error) {
	f.got = r
	return control.Plan{View: r.View, Ranks: 1 << 20, Program: &control.Program{Curve: []control.Point{{Local: 1, Most: 2}}}}, f.do(ctx, nil)
}

func (f *fake) Queues() []control.Queue { return []control.Queue{{Name: "d", Batches: 9}} }

func (f *fake) Queue(name string) (control.QueueDetail, error) {
	batch := control.AsideBatch{Batch: "rank-0/batch-000007", By: []control.Giver{{Rank: 3, Cause: "closed"}}}
	return control.QueueDetail{
		Queue: control.Queue{Name: name}, Nodes: []control.QueueNode{{Host: "h"}},
		Leases: []control.Lease{{Rank: 1}}, SetAside: []control.AsideBatch{batch},
	}, f.fail
}

func (f *fake) ResetQueue(ctx context.Context, r control.ResetRequest) (control.Queue, error) {
	f.got = r
	return control.Queue{Name: r.Name, Run: 2}, f.do(ctx, nil)
}

func (f *fake) Policy(r control.PolicyRequest) (control.Policy, error) {
	f.got = r
	return control.Policy{Name: r.Name, Names: []string{"a", "b"}}, f.fail
}

func (f *fake) PinCache(r control.CachePinRequest) (control.CachePin, error) {
	f.got = r
	return control.CachePin{View: r.View, Tier: r.Tier, Kind: control.Chunks}, f.fail
}

func (f *fake) Cached() control.CacheList {
	return control.CacheList{Policy: "a", Views: []control.Cached{{View: "d", RAM: control.Held{Batches: 3, Bytes: 1 << 40}}}}
}

func (f *fake) Evict(ctx context.Context, name string) (control.Eviction, error) {
	f.got = name
	return control.Eviction{Name: name, Stayed: control.Held{Batches: 1}}, f.do(ctx, nil)
}

func (f *fake) Warm(ctx context.Context, r control.WarmRequest, p func(control.Progress)) (control.Warm, error) {
	f.got = r
	return control.Warm{View: r.View, All: 9, Ready: 8, Full: "full"}, f.do(ctx, p)
}

// start serves n until the test ends, and returns the socket.
func start(t *testing.T, n control.Node) string {
	t.Helper()
	return startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.Serve(ctx, l, n, slog.New(slog.DiscardHandler))
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

func TestEveryMethodReachesTheNode(t *testing.T) {
	ctx := t.Context()
	sent := []control.Progress{{Stage: "indexing", Bytes: 1, Total: 2}, {Stage: "indexing", Bytes: 2, Total: 2, Records: 9}}
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
	if list, err := c.Datasets(ctx); err != nil || !reflect.DeepEqual(list, n.Datasets()) {
		t.Errorf("Datasets() = %v, %v", list, err)
	}
	if d, err := c.Dataset(ctx, "../odd name"); err != nil || d.Name != "../odd name" {
		t.Errorf("Dataset() = %v, %v", d, err)
	}
	if err := c.Remove(ctx, "x"); err != nil {
		t.Errorf("Remove() = %v", err)
	}
	load := control.LoadRequest{Name: "d@ranks=2", Ranks: true}
	if l, err := c.Load(ctx, load); err != nil || n.got != load || len(l.Jobs) != 1 || l.Jobs[0].Name != "d@ranks=2" || l.Jobs[0].Ranks[0].Rank != 3 {
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
		if err != nil || !reflect.DeepEqual(n.got, want) {
			t.Errorf("%s: the node got %+v, %v, want %+v", what, n.got, err, want)
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
	err = c.DrainNode(ctx, control.DrainRequest{Node: "n", Drain: true})
	got("DrainNode", control.DrainRequest{Node: "n", Drain: true}, err)
	err = c.RemoveNode(ctx, "../odd name")
	got("RemoveNode", "../odd name", err)
	r := control.PlanRequest{View: "d@epoch=3", Pin: true, Weights: &control.Weights{Local: 1, Time: 2}}
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
	r := control.ResetRequest{Name: "d@epoch=3", Aside: true}
	if q, err := c.ResetQueue(ctx, r); err != nil || q.Name != r.Name || q.Run != 2 || n.got != r {
		t.Errorf("ResetQueue() = %+v, %v; the node got %+v", q, err, n.got)
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
		if err != nil || !reflect.DeepEqual(answer, want) || !reflect.DeepEqual(n.got, request) {
			t.Errorf("%s = %+v, %v; the node got %+v", what, answer, err, n.got)
		}
	}
	policy := control.PolicyRequest{Name: "b"}
	p, err := c.Policy(ctx, policy)
	got("Policy()", p, control.Policy{Name: "b", Names: []string{"a", "b"}}, policy, err)
	pin := control.CachePinRequest{View: "d@epoch=3", Tier: control.TierRAM}
	i, err := c.PinCache(ctx, pin)
	got("PinCache()", i, control.CachePin{View: "d@epoch=3", Tier: "ram", Kind: "chunks"}, pin, err)
	list, err := c.Cached(ctx)
	got("Cached()", list, n.Cached(), pin, err)
	e, err := c.Evict(ctx, "../odd name")
	got("Evict()", e, control.Eviction{Name: "../odd name", Stayed: control.Held{Batches: 1}}, "../odd name", err)
	rank, seen := uint64(7), 0
	n.work = func(_ context.Context, progress func(control.Progress)) error {
		progress(control.Progress{Stage: "warming"})
		return nil
	}
	warm := control.WarmRequest{View: "d", Rank: &rank, Check: true}
	w, err := c.Warm(ctx, warm, func(control.Progress) { seen++ })
	got("Warm()", w, control.Warm{View: "d", All: 9, Ready: 8, Full: "full"}, warm, err)
	if seen != 1 {
		t.Errorf("%d times progress", seen)
	}
}

// A daemon that has taken a change of the cluster on may wait for an election;
// one that never comes back from that does not hang its clients.
func TestChangesOfTheClusterTakeTheirTime(t *testing.T) {
	for name, do := range map[string]func(context.Context, *control.Client) error{
		"token": func(ctx context.Context, c *control.Client) error {
			_, err := c.CreateToken(ctx, control.TokenRequest{})
			return err
		},
		"drain":  func(ctx context.Context, c *control.Client) error { return c.DrainNode(ctx, control.DrainRequest{}) },
		"remove": func(ctx context.Context, c *control.Client) error { return c.RemoveNode(ctx, "x") },
		"plan": func(ctx context.Context, c *control.Client) error {
			_, err := c.Plan(ctx, control.PlanRequest{})
			return err
		},
		"reset": func(ctx context.Context, c *control.Client) error {
			_, err := c.ResetQueue(ctx, control.ResetRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			const answer = 250 * time.Millisecond
			n := &fake{work: func(ctx context.Context, _ func(control.Progress)) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(2 * answer):
					return fmt.Errorf("no leader: %w", meta.ErrUnavailable)
				}
			}}
			c := control.Dial(start(t, n))
			c.SetAnswer(answer)
			if err := do(t.Context(), c); !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("got %v, want the daemon's own answer", err)
			}
		})
	}
}

func TestChangeThatNeverEnds(t *testing.T) {
	ended := make(chan bool)
	n := &fake{work: func(ctx context.Context, _ func(control.Progress)) error {
		defer close(ended)
		<-ctx.Done()
		return ctx.Err()
	}}
	c := control.Dial(start(t, n))
	c.SetChange(10 * time.Millisecond)
	if err := c.RemoveNode(t.Context(), "x"); !errors.Is(err, control.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	<-ended
}

func TestErrorsKeepTheirWordsAndKind(t *testing.T) {
	kinds := []error{meta.ErrNotExist, meta.ErrExist, meta.ErrInvalid, meta.ErrStale,
		meta.ErrCorrupt, meta.ErrNoSpace, meta.ErrBusy, meta.ErrUnavailable, meta.ErrDenied, context.Canceled}
	n := &fake{}
	c := control.Dial(start(t, n))
	for _, kind := range kinds {
		n.fail = fmt.Errorf("open x: %w", kind)
		_, err := c.Create(t.Context(), control.CreateRequest{}, func(control.Progress) {})
		if err == nil || err.Error() != n.fail.Error() {
			t.Errorf("%v: got %v", n.fail, err)
		}
		for _, other := range kinds {
			if errors.Is(err, other) != (other == kind) {
				t.Errorf("errors.Is(%v, %v) = %v", err, other, !errors.Is(err, other))
			}
		}
		if err := c.DrainNode(t.Context(), control.DrainRequest{}); !errors.Is(err, kind) || err.Error() != n.fail.Error() {
			t.Errorf("of a node: got %v, want %v", err, n.fail)
		}
	}
	n.fail = errors.New("something else")
	if err := c.Remove(t.Context(), "x"); err == nil || err.Error() != "something else" {
		t.Errorf("got %v", err)
	}
}

// post sends a body as no Client would.
func post(t *testing.T, socket, method, path, body string) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(method, "http://rankfs"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status + " " + string(data)
}

func TestBadRequests(t *testing.T) {
	socket := start(t, &fake{})
	tests := []struct{ name, method, path, body, want string }{
		{"good", "POST", "/v1/remove", `{"name":"x"}`, `200 OK {"result":{}}`},
		{"empty", "POST", "/v1/remove", ``, `"kind":"invalid"`},
		{"malformed", "POST", "/v1/remove", `{"name":`, `"kind":"invalid"`},
		{"wrong type", "POST", "/v1/remove", `{"name":3}`, `"kind":"invalid"`},
		{"negative", "POST", "/v1/create", `{"ranks":-1}`, `"kind":"invalid"`},
		{"overflow", "POST", "/v1/create", `{"ranks":18446744073709551616}`, `"kind":"invalid"`},
		{"unknown field", "POST", "/v1/verify", `{"path":"/etc"}`, `"kind":"invalid"`},
		{"two values", "POST", "/v1/remove", `{"name":"x"}{"name":"y"}`, `more than one JSON value`},
		{"oversized", "POST", "/v1/create", `{"name":"` + strings.Repeat("x", control.MaxBody) + `"}`, `too large`},
		{"a life that is no number", "POST", "/v1/token", `{"life":"1h"}`, `"kind":"invalid"`},
		{"half a use", "POST", "/v1/token", `{"uses":0.5}`, `"kind":"invalid"`},
		{"a token for good measure", "POST", "/v1/token", `{"life":1,"uses":1,"token":"x"}`, `"kind":"invalid"`},
		{"a drain of two", "POST", "/v1/drain", `{"node":["a","b"]}`, `"kind":"invalid"`},
		{"a removal of nothing", "POST", "/v1/remove-node", ``, `"kind":"invalid"`},
		{"ranks below zero", "POST", "/v1/plan", `{"seats":[{"host":"a","ranks":-1}]}`, `"kind":"invalid"`},
		{"weights below zero", "POST", "/v1/plan", `{"weights":{"local":-1}}`, `"kind":"invalid"`},
		{"too many seats", "POST", "/v1/plan", `{"seats":[` + strings.Repeat(`{"host":"a","ranks":1},`, control.MaxBody/20) + `]}`, `too large`},
		{"get", "GET", "/v1/status", ``, `405 `},
		{"no such method", "POST", "/v1/format", ``, `404 `},
		{"no such path", "POST", "/etc/passwd", ``, `404 `},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := post(t, socket, test.method, test.path, test.body); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestDisconnectCancels(t *testing.T) {
	begun, ended := make(chan bool), make(chan error, 1)
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	c := control.Dial(start(t, n))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := c.Verify(ctx, "x", func(control.Progress) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("node: %v", err)
	}
}

// A request may take longer than the time to send it.
func TestLongOperationOutlivesRequestTimeout(t *testing.T) {
	const d = 250 * time.Millisecond
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * d):
			return nil
		}
	}}
	c := control.Dial(startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, n, d)
	}))
	if _, err := c.Verify(t.Context(), "x", func(control.Progress) {}); err != nil {
		t.Error(err)
	}
}

func TestClientThatDoesNotReadEndsItsOperation(t *testing.T) {
	ended := make(chan bool)
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		for ctx.Err() == nil {
			progress(control.Progress{Stage: strings.Repeat("x", 1000)})
		}
		close(ended)
		return ctx.Err()
	}}
	socket := startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, n, 50*time.Millisecond)
	})
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	<-ended
}

func TestSlowRequestsAreCutOff(t *testing.T) {
	socket := startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, &fake{}, 10*time.Millisecond)
	})
	tests := []struct{ name, send string }{
		{"silent", ""},
		{"half a header", "POST /v1/status HTTP/1.1\r\nHost:"},
		{"half a body", "POST /v1/remove HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, test.send); err != nil && !errors.Is(err, syscall.EPIPE) { // cut off already
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(conn); strings.Contains(string(answer), `"result"`) {
				t.Errorf("got %q, %v", answer, err)
			}
		})
	}
}

func TestLongHeaderIsRefused(t *testing.T) {
	conn, err := net.Dial("unix", start(t, &fake{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server stops reading half way
		fmt.Fprintf(conn, "POST /v1/status HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "431") {
		t.Errorf("got %q, %v", line, err)
	}
}

// pipes is a listener without end.
type pipes struct{}

func (pipes) Accept() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
func (pipes) Close() error              { return nil }
func (pipes) Addr() net.Addr            { return nil }

func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := control.Limit(pipes{}, control.MaxConns)
		var conns []net.Conn
		for range control.MaxConns {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		accepted := make(chan net.Conn, 1)
		go func() { c, _ := l.Accept(); accepted <- c }()
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("accepted one too many")
		}
		conns[0].Close()
		conns[0].Close() // gives back one slot, not two
		<-accepted
		go func() { c, _ := l.Accept(); accepted <- c }()
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("a second Close made room for another")
		}
		l.Close()
		if c := <-accepted; c != nil {
			t.Error("accepted after Close")
		}
	})
}

func TestServeWaitsForWhatIsUnderWay(t *testing.T) {
	begun, over := make(chan bool), false
	n := &fake{work: func(ctx context.Context, progress func(control.Progress)) error {
		close(begun)
		<-ctx.Done()
		over = true // read after Serve returned: the race detector objects if it did not wait
		return fmt.Errorf("verify x: %w", ctx.Err())
	}}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	answer := make(chan error)
	go func() {
		_, err := control.Dial(socket).Verify(context.WithoutCancel(ctx), "x", func(control.Progress) {})
		answer <- err
	}()
	if err := control.Serve(ctx, l, n, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("Serve() = %v", err)
	}
	if !over {
		t.Error("the operation goes on")
	}
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the client was told %v", err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket is still there")
	}
}

// answerWith serves each connection with fixed bytes.
func answerWith(t *testing.T, answer string) string {
	return startWith(t, func(ctx context.Context, l net.Listener) error {
		stop := context.AfterFunc(ctx, func() { l.Close() })
		defer stop()
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, answer)
			}
			c.Close()
		}
	})
}

func TestClientOfOddDaemons(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"gone at once", "", "EOF"},
		{"cut short", "HTTP/1.1 200 OK\r\n\r\n{\"progress\":{}}\n", "went away"},
		{"cut in a line", "HTTP/1.1 200 OK\r\n\r\n{\"progress\":{", "went away"},
		{"no JSON", "HTTP/1.1 200 OK\r\n\r\nhello\n", "invalid character"},
		{"another version", "HTTP/1.1 404 Not Found\r\n\r\n", "another version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := control.Dial(answerWith(t, test.answer))
			_, err := c.Verify(t.Context(), "x", func(control.Progress) {})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A stopped daemon still has a socket to connect to.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := control.Dial(socket)
	c.SetAnswer(10 * time.Millisecond)
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}
