package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/dispatch"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

const (
	ranks   = 3
	steps   = 67
	view    = "d@epoch=0,ranks=3,seed=0,order=none,step=30,tail=keep,assign=local"
	dataset = "d"
)

// A cluster is three nodes that agree at once, but now and then do not say so.
type cluster struct {
	t       *testing.T
	machine *state.Machine
	holders func(step uint64) []string
	steps   atomic.Uint64 // of each rank
	leader  *dispatch.Leader
	mu      struct {
		sync.Mutex
		random *rand.Rand
		leads  bool
		now    int64 // of the cluster
		silent int   // one in so many steps has no reply; 0: none
	}
}

// node is node i, on host a, b, c and so on as spelled.
func node(i int, spelled func(string) string) state.Node {
	host := spelled(string(rune('a' + i)))
	return state.Node{ID: fmt.Sprintf("%016x", i+1), Host: host, Addr: host + ":1", Key: fmt.Sprint("key", i)}
}

func plainly(host string) string { return host }

// newCluster has a dataset and its queue, handed out by a policy. Of each step the
// bytes are on hosts as holders says.
func newCluster(t *testing.T, policy queue.Policy, spelled func(string) string, holders func(step uint64) []string) *cluster {
	t.Helper()
	c := &cluster{t: t, machine: state.Speaking(state.Version), holders: holders}
	c.steps.Store(steps)
	c.mu.random, c.mu.leads = rand.New(rand.NewPCG(1, 2)), true
	hash := strings.Repeat("a", 64)
	c.must(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}}, &state.Token{Hash: hash, Expires: 1 << 62, Uses: state.MaxUses})
	for i := range 3 {
		c.must(&state.Admit{TokenHash: hash, Node: node(i, spelled)})
	}
	c.must(&state.Setting{Key: dispatch.PolicySetting, Value: policy.String()},
		&state.PutDataset{Name: dataset, Registration: []byte("{}"), Index: strings.Repeat("0", 64)})
	c.lead()
	return c
}

// lead has the readers ask another leader from now on. The one before follows the
// cluster's state, as that of each node does.
func (c *cluster) lead() {
	c.leader = dispatch.NewLeader()
	c.leader.Start(dispatch.Config{Group: c, Machine: c.machine, Log: slog.New(slog.DiscardHandler), Units: c.units})
	ctx, cancel := context.WithCancel(c.t.Context())
	var follower sync.WaitGroup
	l := c.leader
	follower.Go(func() { l.Follow(ctx) })
	c.t.Cleanup(func() { cancel(); follower.Wait() })
}

func (c *cluster) units(context.Context, string, uint64) (dispatch.Units, error) {
	return dispatch.Units{Ranks: ranks, Steps: c.steps.Load(), Holders: func(_, step uint64) map[string]int64 {
		held := make(map[string]int64)
		for _, host := range c.holders(step % steps) {
			held[host] = 100
		}
		return held
	}}, nil
}

// must has the cluster agree to commands outside of queues.
func (c *cluster) must(commands ...state.Command) {
	c.t.Helper()
	for _, command := range commands {
		if _, err := c.Do(c.t.Context(), command); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) Do(_ context.Context, command state.Command) (state.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.now++
	state.Stamp(command, c.mu.now)
	data, err := state.Encode(command)
	if err != nil {
		return state.Result{}, err
	}
	return c.machine.Apply(c.machine.Summary().Applied+1, data)
}

func (c *cluster) DoFor(ctx context.Context, _ string, command state.Command) (state.Result, error) {
	r, err := c.Do(ctx, command)
	if _, is := command.(*state.TakeUnit); is && c.chance(c.mu.silent) {
		return state.Result{}, fmt.Errorf("whether a step was made %w", meta.ErrUnavailable)
	}
	return r, err
}

func (c *cluster) Leading() (term uint64, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 1, c.mu.leads
}

// chance is true one time in n, and never if n is 0.
func (c *cluster) chance(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n > 0 && c.mu.random.IntN(n) == 0
}

// A member is the cluster as one of its nodes sees it.
type member struct {
	*cluster
	id string
}

func (c *cluster) member(i int) member { return member{c, node(i, plainly).ID} }

func (m member) Self() string { return m.id }

func (m member) AskLeader(ctx context.Context, call string, request, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	handle := m.leader.Take
	if call == dispatch.CallPeek {
		handle = m.leader.Peek
	}
	answer, err := handle(ctx, m.id, data)
	if err != nil {
		return err
	}
	if data, err = json.Marshal(answer); err != nil {
		return err
	}
	return json.Unmarshal(data, reply)
}

func (m member) open(rank uint64) *dispatch.Reader {
	d, _ := m.machine.Dataset(dataset)
	return dispatch.NewReaders(m, m.machine).Open(view, dataset, d.Generation, rank, 0)
}

// A job is six readers, two on each node, that read the queue to its end.
type job struct {
	*cluster
	fatal uint64 // the unit that ends each reader which takes it

	mu struct {
		sync.Mutex
		finishers map[uint64]int // how many readers know that they finished a unit
		asides    []string       // what readers were told at the end of units set aside
	}
}

// run has the readers read while nodes are seen down and up.
func (j *job) run(ctx context.Context) {
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Go(func() {
			for !j.live(ctx, i%3) {
			}
		})
	}
	readers.Go(func() {
		for i := range 30 {
			id := node(i%3, plainly).ID
			j.must(&state.Health{ID: id}, &state.Health{ID: id, Up: true})
			time.Sleep(time.Millisecond) // so that it meets the readers at work
		}
	})
	readers.Wait()
}

// live reads as one reader until it ends, at the fatal unit or one time in ten, or
// the queue does, which it reports.
func (j *job) live(ctx context.Context, i int) (over bool) {
	r := j.member(i).open(uint64(i))
	defer func() {
		if err := r.Leave(ctx); err != nil {
			j.t.Error(err)
		}
	}()
	held := int64(-1)
	for {
		if j.chance(3) { // to look first makes no difference
			r.Ready(ctx, false)
		}
		unit, over, err := r.Next(ctx, true)
		switch {
		case errors.Is(err, meta.ErrUnavailable):
			continue
		case errors.Is(err, meta.ErrOvertaken):
			held = -1
			continue
		case err != nil && !errors.Is(err, meta.ErrSetAside):
			j.t.Error(err)
			return true
		}
		j.finish(held, err)
		if held = int64(unit); err != nil {
			held = -1
		} else if over {
			return true
		} else if unit == j.fatal || j.chance(10) {
			return false
		}
	}
}

// finish notes that a reader was told to have finished a unit, and what of others.
func (j *job) finish(unit int64, aside error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if unit >= 0 {
		j.mu.finishers[uint64(unit)]++
	}
	if aside != nil {
		j.mu.asides = append(j.mu.asides, aside.Error())
	}
}

// spread has some bytes on each host, and some on none.
func spread(step uint64) []string {
	return [][]string{{"a", "b"}, {"b", "c"}, {"c"}, {"a"}, {}}[step*5/steps]
}

// Readers end with work in hand, one unit ends each reader that takes it, nodes are
// seen down and up, and the cluster does not say what became of some steps. Still
// each unit has one finisher or is set aside, and every reader comes to the end and
// is told of those. Units that were set aside are done by others later.
func TestReadersAndTheLeader(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			c := newCluster(t, policy, plainly, spread)
			c.mu.silent = 20
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			const fatal, none = 5, ranks * steps
			j := &job{cluster: c, fatal: fatal}
			j.mu.finishers = make(map[uint64]int)
			j.run(ctx)
			q, _ := c.machine.Queue(view)
			if fate := c.machine.Fate(view, fatal); fate != state.SetAside || q.Policy != policy.String() {
				t.Errorf("the unit that ends all readers of %+v is %v", q, fate)
			}
			if q.Done+uint64(q.Aside) != q.Units || q.Units != ranks*steps || q.Held != 0 {
				t.Errorf("at the end %+v", q)
			}
			if len(j.mu.asides) != 6 {
				t.Errorf("of 6 readers %d were told of units set aside", len(j.mu.asides))
			}
			for _, told := range j.mu.asides {
				if want := "queue of d was set aside in part: " + dispatch.FirstSetAside(c.machine, view); !strings.HasPrefix(told, want) {
					t.Errorf("a reader was told %q, not %q", told, want)
				}
			}
			for j.fatal = none; q.Aside > 0; q, _ = c.machine.Queue(view) { // some may be set aside again
				c.must(&state.ResetQueue{View: view, Resets: q.Resets, Aside: true})
				j.run(ctx)
			}
			for unit := range q.Units {
				if n := j.mu.finishers[unit]; n != 1 || c.machine.Fate(view, int64(unit)) != state.Done {
					t.Errorf("unit %d was finished %d times", unit, n)
				}
			}
		})
	}
}

// readAll reads the queue to its end as one reader, and returns how many units it got.
func (c *cluster) readAll() (units int) {
	c.t.Helper()
	r := c.member(0).open(0)
	for ; ; units++ {
		_, over, err := r.Next(c.t.Context(), true)
		if err != nil {
			c.t.Fatal(err)
		}
		if over {
			if err := r.Leave(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
			return units
		}
	}
}

// A queue that the cluster has dropped, or whose dataset was created again, begins anew
// when it is read: at the leader that has handed it out before, too, and at one that has
// not.
func TestAQueueThatIsBegunAnew(t *testing.T) {
	for name, drop := range map[string]func(c *cluster){
		"dropped": func(c *cluster) { c.must(&state.DropQueue{View: view}) },
		"of a dataset that was created again, larger": (*cluster).createLarger,
	} {
		for at, leader := range map[string]func(c *cluster){"": func(*cluster) {}, ", at another leader": (*cluster).lead} {
			t.Run(name+at, func(t *testing.T) {
				c := newCluster(t, queue.PolicyFlow, plainly, spread)
				if units := c.readAll(); units != ranks*steps {
					t.Fatalf("read %d units", units)
				}
				drop(c)
				leader(c)
				if units, want := c.readAll(), ranks*int(c.steps.Load()); units != want {
					t.Errorf("read %d units of %d when it was begun anew", units, want)
				}
			})
		}
	}
}

// createLarger removes the dataset and creates one of its name that is twice as large.
func (c *cluster) createLarger() {
	c.steps.Store(2 * steps)
	c.must(&state.RemoveDataset{Name: dataset, Generation: 1}, &state.PutDataset{Name: dataset, Registration: []byte("{}"), Index: strings.Repeat("1", 64)})
}

// A leader that has led a queue, and leads no more, is not misled by readers of a larger
// one of that name, who hold units that the first one had not.
func TestAQueueThatAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, queue.PolicyFlow, plainly, spread)
		c.readAll()
		c.createLarger()
		c.lead()
		held := make(map[uint64]bool)
		for i := range 2 * ranks * steps {
			unit, over, err := c.member(i%3).open(uint64(i%3)).Next(t.Context(), true)
			if over || err != nil || held[unit] {
				t.Fatalf("reader %d is given unit %d, %v, %v", i, unit, over, err)
			}
			held[unit] = true
		}
		time.Sleep(time.Second) // the leader before follows the state
		if q, ok := c.machine.Queue(view); !ok || q.Held != 2*ranks*steps {
			t.Errorf("queue %+v", q)
		}
	})
}

// A reader that is said to be ready is given a unit, the end or an error, and one that is
// not is told to wait, whatever the others hold, to the end of the queue and behind it. But
// for one by flow that would finish its unit while some are free: whether the schedule has
// one for it shows when that is done.
func TestReadyIsWhatNextComesTo(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		for readers := 1; readers <= 4; readers++ {
			t.Run(fmt.Sprint(policy, " ", readers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newCluster(t, policy, plainly, spread).readAsSaid(readers, policy) })
			})
		}
	}
}

// readAsSaid has readers, one of them chosen by chance at a time, ask whether they are
// ready and then read, until each has read the end twice.
func (c *cluster) readAsSaid(readers int, policy queue.Policy) {
	c.t.Helper()
	all, ends := make([]*dispatch.Reader, readers), make([]int, readers)
	for i := range all {
		all[i] = c.member(i % 3).open(uint64(i % 3))
	}
	for left := readers; left > 0; {
		i := c.mu.random.IntN(readers)
		ready := all[i].Ready(c.t.Context(), false)
		q, _ := c.machine.Queue(view)
		unforeseen := policy == queue.PolicyFlow && q.Done+uint64(q.Held) < q.Units
		unit, over, err := all[i].Next(c.t.Context(), false)
		if waits := errors.Is(err, syscall.EAGAIN); waits == ready && !(waits && unforeseen) {
			c.t.Fatalf("reader %d, ready: %v, and is given unit %d, over: %v, %v", i, ready, unit, over, err)
		}
		if over {
			if ends[i]++; ends[i] == 2 {
				left--
			}
		}
		time.Sleep(time.Duration(c.mu.random.IntN(100)) * time.Millisecond)
	}
}

// A reader gets the units whose bytes are on its host first, by whichever names its
// node and the source call that.
func TestHoldersByAnyName(t *testing.T) {
	spellings := map[string]func(string) string{
		"short": plainly,
		"full":  func(host string) string { return host + ".example.com" },
		"upper": func(host string) string { return strings.ToUpper(host) + ".Example.COM" },
		"root":  func(host string) string { return host + ".example.com." },
	}
	holder := func(step uint64) int { return int(step % 3) }
	for nodes, ours := range spellings {
		for source, theirs := range spellings {
			t.Run(nodes+" nodes, "+source+" in the source", func(t *testing.T) {
				c := newCluster(t, queue.PolicyFlow, ours, func(step uint64) []string {
					return []string{theirs(string(rune('a' + holder(step))))}
				})
				for i := range 3 {
					unit, over, err := c.member(i).open(uint64(i)).Next(t.Context(), true)
					if step := unit / ranks; over || err != nil || holder(step) != i {
						t.Errorf("a reader on node %d gets unit %d of step %d, %v", i, unit, step, err)
					}
				}
			})
		}
	}
}

// A request is answered by the node that leads, once it is complete, for the node
// that sent it.
func TestRefusedRequests(t *testing.T) {
	good := fmt.Sprintf(`{"view":%q,"generation":1,"worker":"w","node":"n","turn":1}`, view)
	c := newCluster(t, queue.PolicyFlow, plainly, spread)
	incomplete := dispatch.NewLeader()
	follower := newCluster(t, queue.PolicyFlow, plainly, spread)
	follower.mu.leads = false
	for name, test := range map[string]struct {
		leader        *dispatch.Leader
		from, request string
		want          error
	}{
		"of another node":   {c.leader, "other", good, meta.ErrDenied},
		"no request":        {c.leader, "n", "{", meta.ErrInvalid},
		"before its start":  {incomplete, "n", good, meta.ErrUnavailable},
		"where it does not": {follower.leader, "n", good, meta.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			for _, handle := range []func(context.Context, string, json.RawMessage) (any, error){test.leader.Take, test.leader.Peek} {
				if _, err := handle(t.Context(), test.from, json.RawMessage(test.request)); !errors.Is(err, test.want) {
					t.Errorf("%v, want %v", err, test.want)
				}
			}
		})
	}
}
