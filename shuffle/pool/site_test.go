package pool_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/placement"
	"rankfs/shuffle/pool"
	"rankfs/test/wiretest"
)

// A site is the pools of several hosts, which agree by one state machine. Their file
// systems are real.
type site struct {
	t       *testing.T
	ctx     context.Context
	machine *state.Machine
	members []*member
	log     slog.Handler

	mu struct {
		sync.Mutex
		down   map[string]bool
		silent map[string]bool // they take connections and say nothing
		slow   *slowLink       // to a node; nil if none is
		lost   map[string]bool // and the cluster knows
		agreed []state.Command // in their order
		now    int64           // of the cluster
		hooks  hooks
	}
}

// hooks are called where something is on its way; what they are not for is nil.
type hooks struct {
	connect func()                                 // to another node
	conn    func(node string, c net.Conn) net.Conn // what that comes to
	jobs    func()                                 // before a node looks up the jobs that there are
	job     func()                                 // and one of them, by its name
	ask     func(state.Command) error              // before the cluster agrees to a command, or does not
	answer  func(state.Command) error              // after it has
	lasts   func() error                           // before what a node knows outlives a power failure
}

// A member is one of its nodes, and what its pool has the cluster agree by.
type member struct {
	*pool.Pool
	site *site
	id   string
	dir  string
	ram  int64
	disk pool.Disk
	dial wire.Dial
	wire *wire.Client
	stop func() // ends its daemon, and leaves its files

	guest bool // it keeps no map

	behind atomic.Bool                // it has applied no commit yet, until it asks which there are
	knows  atomic.Pointer[state.Maps] // these are the maps for it, until then
}

const ram = 16 << 20

func newSite(t *testing.T, nodes int) *site {
	t.Helper()
	return newSiteOf(t, nodes, ram)
}

// newSiteOf is newSite of nodes with so much memory for the pool.
func newSiteOf(t *testing.T, nodes int, ram int64) *site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &site{t: t, ctx: ctx, machine: state.Speaking(state.Version), log: slog.DiscardHandler}
	s.mu.down, s.mu.silent, s.mu.lost = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for i := range nodes {
		s.members = append(s.members, &member{site: s, id: fmt.Sprintf("%016x", i+1), dir: filepath.Join(t.TempDir(), "pool"), ram: ram})
	}
	leader, token := state.Sender{Node: s.members[0].id, Leads: true}, strings.Repeat("a", 64)
	s.must(leader, &state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}})
	for i, m := range s.members {
		hash := token
		if i == 0 {
			hash = ""
		}
		host := fmt.Sprint("host", i)
		s.must(leader, &state.Admit{TokenHash: hash, Node: state.Node{ID: m.id, Host: host, Addr: host + ":1", Key: "key" + host}, Speaks: state.Version})
		if i == 0 {
			s.must(leader, &state.Token{Hash: token, Expires: 1 << 62, Uses: state.MaxUses, Role: state.Member})
		}
	}
	for _, m := range s.members {
		m.offer(ram, false)
		m.start()
	}
	return s
}

// offer says what a node has for the pool.
func (m *member) offer(bytes int64, full bool) {
	m.site.t.Helper()
	m.site.must(state.Sender{Node: m.id}, &state.OfferPool{ID: m.id, Bytes: bytes, Full: full})
}

// start makes the pool of a node, as its daemon does.
func (m *member) start() {
	t := m.site.t
	t.Helper()
	client := wire.New(m.site.connect, wire.Config{Log: slog.New(slog.DiscardHandler)})
	client.Follow(m.site.upIDs())
	m.wire = client
	self := m.id
	if m.guest {
		self = ""
	}
	m.Pool = pool.New(pool.Config{
		Dir: m.dir, RAM: m.ram, Disk: m.disk, Guest: m.guest, State: watched{m.site.machine, m}, Cluster: m, Member: m, Wire: client,
		Nodes: func() []placement.Node { return m.site.up(self) },
		Hosts: func() int { return pool.Hosts(m.site.machine.Nodes()) },
		Log:   slog.New(m.site.log),
	})
	t.Cleanup(m.unmount)
	if err := m.Start(m.site.ctx, new(inMemory)); err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	l, m.dial = wiretest.Pipe(t)
	calls, pushes := m.Calls()
	_, end := wiretest.Serve(t, l, calls, pushes, wire.Limits{Log: slog.New(slog.DiscardHandler)})
	m.stop = sync.OnceFunc(func() {
		end()
		wiretest.Close(t, client)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(m.stop)
}

// A watched state calls the site's hooks.
type watched struct {
	*state.Machine
	*member
}

func (w watched) Commit(stage, number uint64) (state.Commit, bool) {
	if w.behind.Load() {
		return state.Commit{}, false
	}
	return w.Machine.Commit(stage, number)
}

func (w watched) Commits(stage uint64) state.Maps {
	if maps := w.knows.Load(); maps != nil {
		return *maps
	}
	return w.Machine.Commits(stage)
}

func (w watched) PoolJobs() []state.PoolJob {
	w.site.mu.Lock()
	hook := w.site.mu.hooks.jobs
	w.site.mu.Unlock()
	if hook != nil {
		hook()
	}
	return w.Machine.PoolJobs()
}

func (w watched) PoolJob(name string) (state.PoolJob, bool) {
	w.site.mu.Lock()
	hook := w.site.mu.hooks.job
	w.site.mu.Unlock()
	if hook != nil {
		hook()
	}
	return w.Machine.PoolJob(name)
}

// unmount takes away what outlives a daemon.
func (m *member) unmount() {
	dirs, _ := filepath.Glob(m.dir + "/*")
	for _, dir := range dirs {
		_ = unix.Unmount(dir, unix.MNT_DETACH) // it may be a directory alone
	}
}

// follow has the pool keep to what is agreed on until stop is called.
func (m *member) follow() (stop func()) {
	ctx, cancel := context.WithCancel(m.site.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Follow(ctx)
	}()
	return func() { cancel(); <-done }
}

func (s *site) connect(ctx context.Context, node string) (net.Conn, error) {
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.id == node })
	s.mu.Lock()
	down, silent, slow, hook, made := s.mu.down[node], s.mu.silent[node], s.mu.slow, s.mu.hooks.connect, s.mu.hooks.conn
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	if down {
		return nil, unix.ECONNREFUSED
	}
	if silent {
		here, _ := net.Pipe()
		return here, nil
	}
	conn, err := s.members[i].dial(ctx, node)
	if err == nil && slow != nil && node == slow.to {
		conn = slowConn{conn, slow}
	}
	if err == nil && made != nil {
		conn = made(node, conn)
	}
	return conn, err
}

// fail says that nodes cannot be reached, although no other knows that yet.
func (s *site) fail(nodes ...*member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range nodes {
		s.mu.down[m.id] = true
	}
}

// loses has the cluster know that a node is down.
func (s *site) loses(id string) {
	s.mu.Lock()
	s.mu.lost[id] = true
	s.mu.Unlock()
	for _, m := range s.members {
		m.wire.Follow(s.upIDs())
	}
}

func (s *site) upIDs() (ids []string) {
	for _, n := range s.up("") {
		ids = append(ids, n.ID)
	}
	return ids
}

// up are the nodes as one of them knows them.
func (s *site) up(self string) []placement.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(pool.NodesUp(s.machine.Nodes(), self), func(n placement.Node) bool { return s.mu.lost[n.ID] })
}

func (s *site) apply(by state.Sender, c state.Command) (state.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.now += 1e6
	state.Sign(c, by, state.Version)
	state.Stamp(c, s.mu.now)
	data, err := state.Encode(c)
	if err != nil {
		return state.Result{}, err
	}
	r, err := s.machine.Apply(s.machine.Summary().Applied+1, data)
	if err == nil {
		s.mu.agreed = append(s.mu.agreed, c)
	}
	return r, err
}

func (s *site) must(by state.Sender, c state.Command) {
	s.t.Helper()
	if _, err := s.apply(by, c); err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
}

func (s *site) hook(h hooks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.hooks = h
}

// silent has the cluster give no answer any more, and agree to what it is asked, or not.
func (s *site) silent(agrees bool) {
	gone := func(state.Command) error { return meta.ErrUnavailable }
	if agrees {
		s.hook(hooks{answer: gone})
	} else {
		s.hook(hooks{ask: gone})
	}
}

// agreed are the commands of a kind that were agreed on.
func agreed[C state.Command](s *site) (all []C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.agreed {
		if c, ok := c.(C); ok {
			all = append(all, c)
		}
	}
	return all
}

// Self implements pool.Cluster, and so do those below, or pool.Member.
func (m *member) Self() string { return m.id }

func (m *member) Ready(ctx context.Context) error {
	m.behind.Store(false)
	m.knows.Store(nil)
	return ctx.Err()
}

func (m *member) Removed() bool { return false }

func (m *member) Lasts() error {
	m.site.mu.Lock()
	hook := m.site.mu.hooks.lasts
	m.site.mu.Unlock()
	if hook != nil {
		return hook()
	}
	return nil
}

func (m *member) Agree(ctx context.Context, c state.Command) (state.Result, error) {
	return m.Do(ctx, c)
}

func (m *member) Do(ctx context.Context, c state.Command) (state.Result, error) {
	if err := ctx.Err(); err != nil {
		return state.Result{}, err
	}
	m.site.mu.Lock()
	h := m.site.mu.hooks
	m.site.mu.Unlock()
	if h.ask != nil {
		if err := h.ask(c); err != nil {
			return state.Result{}, err
		}
	}
	r, err := m.site.apply(state.Sender{Node: m.id}, c)
	if h.answer != nil && err == nil {
		err = h.answer(c)
	}
	return r, err
}

// inMemory makes parts, and keeps them by their names.
type inMemory struct{ made sync.Map }

func (m *inMemory) Open(ctx context.Context, p *pool.Part) (pool.File, error) {
	if b, ok := m.made.Load(p.Name()); ok {
		return memory{bytes.NewReader(b.([]byte))}, nil
	}
	b := make([]byte, p.Size())
	if err := p.Fill(ctx, b); err != nil {
		return nil, err
	}
	m.made.Store(p.Name(), b)
	return memory{bytes.NewReader(b)}, nil
}

type memory struct{ *bytes.Reader }

func (memory) Fd() int  { return -1 }
func (memory) Release() {}

// copies are the nodes that have a map, as the cluster knows.
func (s *site) copies(stage string, number uint64) []string {
	s.t.Helper()
	c, ok := s.machine.Commit(s.members[0].of(stage).Number(), number)
	if !ok {
		s.t.Fatalf("map %d is not committed", number)
	}
	return c.Nodes
}

// loseCopies has the cluster know that a node has no copy of a map any more.
func (s *site) loseCopies(stage string, number uint64, nodes ...string) {
	s.t.Helper()
	c, _ := s.machine.Commit(s.members[0].of(stage).Number(), number)
	for _, id := range nodes {
		s.must(state.Sender{Node: id}, &state.KeepCopy{StageName: state.StageName{Job: "j", Name: stage}, Node: id, Map: number, Sum: c.Sum})
	}
}
