package group

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

var (
	histories = flag.Int("histories", 6, "histories to check for linearizability")
	firstSeed = flag.Uint64("seed", 0, "of the first history; 0 draws one")
)

// perTroop is how many histories one cluster makes.
const perTroop = 3

// What a cluster answers is what one machine could have answered, whatever
// happens to nodes and links meanwhile.
func TestHistoriesAreLinearizable(t *testing.T) {
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for i := 0; i < *histories; i += perTroop {
		size := 3 + i/perTroop%2*2
		t.Run(fmt.Sprintf("%d nodes, seed %d", size, seed+uint64(i)), func(t *testing.T) {
			p := newTroop(t, size, seed+uint64(i))
			for range min(perTroop, *histories-i) {
				p.history()
			}
		})
	}
}

// A troop is a cluster whose nodes are used while they come and go.
type troop struct {
	t      *testing.T
	random *rand.Rand
	net    *network
	nodes  []*node
	seed   uint64
	number int
	mu     sync.RWMutex // of what a node's start sets
}

func newTroop(t *testing.T, size int, seed uint64) *troop {
	p := &troop{t: t, random: rand.New(rand.NewPCG(seed, 1)), net: newNetwork(), seed: seed}
	p.nodes = clusterWith(t, size, func(n *node) {
		n.net, n.fragile = p.net, true
		n.times.patience = defaultTimes().patience // a node that ends waits for its commands, and trouble for it
		n.times.dead = time.Hour                   // or leases come back, and the test does not know when
	})
	eventually.True(t, "all votes are given", func() bool { return vote(p.nodes, size) })
	t.Cleanup(p.heal)
	return p
}

// at is a node as it is now, or the next one that runs.
func (p *troop) at(i int) (*Group, *state.Machine) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for p.nodes[i].group == nil {
		i = (i + 1) % len(p.nodes)
	}
	return p.nodes[i].group, p.nodes[i].machine
}

// heal has all links and disks be well again.
func (p *troop) heal() {
	p.net.heal()
	for i := range p.nodes {
		p.disk(i).fail(nil, false)
	}
}

// disk is a node's, as it is now or was when it ended.
func (p *troop) disk(i int) *platter {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.nodes[i].disk
}

// begun is hasBegun of a node as it is now.
func (p *troop) begun(i int) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.nodes[i].hasBegun()
}

// history has clients do things at random amid trouble, and checks what they saw.
func (p *troop) history() {
	p.number++
	r := &run{troop: p, dataset: fmt.Sprintf("d%d", p.number), begins: time.Now()}
	for i := range p.nodes {
		r.locals = append(r.locals, &stepper{run: r, client: workers*lives + i, random: rand.New(rand.NewPCG(p.seed, uint64(p.number*100+workers+i)))})
	}
	p.heal()
	for i := range p.nodes {
		eventually.True(p.t, "it has begun", func() bool { return p.begun(i) })
	}
	r.generation = r.must(&state.PutDataset{Name: r.dataset, Registration: []byte(`{}`), Index: fmt.Sprintf("%064x", 1), IndexBytes: 1}).Generation()
	r.must(&state.MakeJob{Node: p.nodes[0].id, Name: r.dataset, Nonce: 1})
	r.stage = state.StageName{Job: r.dataset, Name: "s"}
	r.stage.Number = r.must(&state.MakeStage{Job: r.dataset, Name: "s", Nonce: 1}).Stage().Number
	r.must(&state.SpecifyStage{StageName: r.stage, Spec: "maps=4"})
	r.must(&state.OpenQueue{View: r.queue(), Generation: r.generation, Units: units, Policy: "flow"})
	if p.number%2 == 1 {
		r.enlist()
	}
	var clients sync.WaitGroup
	for c := range workers {
		random := rand.New(rand.NewPCG(p.seed, uint64(p.number*100+c)))
		clients.Go(func() { r.client(c, random) })
	}
	for range 5 {
		r.trouble()
		time.Sleep(time.Duration(p.random.IntN(400)) * time.Millisecond)
	}
	p.heal()
	clients.Wait()
	r.others.Wait()
	r.leave()
	if got := porcupine.CheckOperationsTimeout(model, r.ops, 5*time.Minute); got != porcupine.Ok {
		p.t.Errorf("history %d with -seed %d: %v", p.number, p.seed, got)
		for _, o := range r.ops {
			p.t.Logf("%d: %v -> %v [%d %d]", o.ClientId, o.Input, o.Output, o.Call, o.Return)
		}
	}
	unknown := 0
	for _, o := range r.ops {
		if o.Output.(seen).unknown {
			unknown++
		}
	}
	p.t.Logf("history %d: %d operations, %d of unknown outcome", p.number, len(r.ops), unknown)
}

const (
	workers = 5
	units   = 12
	actions = 14                // of a client
	lives   = 3                 // of a client as a worker
	slots   = workers*lives + 5 // one more for each node
)

// A run is one history in the making.
type run struct {
	*troop
	dataset    string
	generation uint64
	stage      state.StageName
	begins     time.Time
	others     sync.WaitGroup // beside clients
	locals     []*stepper     // a worker of each node, beside those of clients
	dying      sync.Mutex     // held until a node that dies is back
	log        sync.Mutex
	ops        []porcupine.Operation
}

func (r *run) queue() string {
	return r.dataset + "@epoch=0,ranks=4,seed=0,order=full,step=4,tail=drop,assign=local"
}

func (r *run) must(c state.Command) state.Result {
	r.t.Helper()
	var result state.Result
	if !r.until("a leader executes it", func(ctx context.Context) (err error) {
		g, _ := r.at(0)
		result, err = g.Do(ctx, c)
		if err != nil && !errors.Is(err, meta.ErrUnavailable) {
			r.t.Fatal(err)
		}
		return err
	}) {
		r.t.FailNow()
	}
	return result
}

// An asked is what a client wants, a seen what it got.
type asked struct {
	kind   string // claim, claims, settle, token, drop, redeem, commit, lose, committed, step, leave, begin, death
	key    string
	value  string
	worker int
	finish bool
	take   int64
}

type seen struct {
	unknown bool
	value   string
	step    state.TakenUnit
}

// record does something and writes down when, and what came of it.
func (r *run) record(client int, a asked, do func(ctx context.Context) (seen, error)) seen {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	call := time.Since(r.begins).Nanoseconds()
	s, err := do(ctx)
	back := time.Since(r.begins).Nanoseconds()
	if err != nil && !errors.Is(err, meta.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		r.t.Errorf("%v: %v", a, err)
	}
	if err != nil {
		s, back = seen{unknown: true}, 1<<62
	}
	r.log.Lock()
	defer r.log.Unlock()
	if err == nil || a.kind != "claims" && a.kind != "committed" {
		r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: a, Call: call, Output: s, Return: back})
	}
	return s
}

func (r *run) client(c int, random *rand.Rand) {
	w := stepper{run: r, client: c, random: random}
	for range actions {
		g, m := r.at(random.IntN(len(r.nodes)))
		node := r.nodes[random.IntN(len(r.nodes))].id
		key, value := fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(3)+1)
		switch random.IntN(7) {
		case 0:
			r.record(c, asked{kind: "claim", key: key, value: node}, func(ctx context.Context) (seen, error) {
				// Sent again it may claim again, after another; so it is sent once.
				a, err := g.speak(ctx, node, &state.Claim{Dataset: r.dataset, Generation: r.generation, Ranks: 3, Rank: uint64(key[0] - '0'), Node: node})
				return seen{value: a.Result.Before()}, err
			})
		case 1:
			r.record(c, asked{kind: "claims", key: key}, func(ctx context.Context) (seen, error) {
				if err := g.Ready(ctx); err != nil {
					return seen{}, err
				}
				nodes := m.Claims(r.dataset, 3).Nodes()
				if len(nodes) == 0 {
					return seen{}, nil
				}
				return seen{value: nodes[key[0]-'0']}, nil
			})
		case 2:
			r.record(c, asked{kind: "settle", key: key, value: node}, func(ctx context.Context) (seen, error) {
				view := fmt.Sprintf("%s@epoch=%s,ranks=1,seed=0,order=full,step=4,tail=drop,assign=local", r.dataset, key)
				got, err := g.Do(ctx, &state.Settle{View: view, Generation: r.generation, Nodes: state.Runs{{Node: node, Count: 1}}})
				if err != nil {
					return seen{}, err
				}
				return seen{value: got.Plan().Nodes[0].Node}, nil
			})
		case 3:
			r.token(c, g, key, value, random.IntN(4) == 0)
			if r.hasGuests() {
				r.redeem(c, g, key, random.IntN(guests))
			}
		case 4:
			r.maps(c, g, m, node, asked{kind: []string{"commit", "lose", "committed"}[random.IntN(3)], key: key, value: value})
		default:
			w.step()
		}
	}
}

// maps commits an attempt of a map, gives up its copies, or looks at it. Each is sent once:
// sent again it may be done again, after another.
func (r *run) maps(c int, g *Group, m *state.Machine, node string, a asked) {
	number, sum := uint64(a.key[0]-'0'), uint64(a.value[0]-'0')
	r.record(c, a, func(ctx context.Context) (seen, error) {
		switch a.kind {
		case "commit":
			got, err := g.speak(ctx, node, &state.CommitMaps{Maps: state.MapsByStage{{Stage: r.stage.Number, Maps: state.Commits{{Map: number, Writer: node, Sum: sum, Nodes: []string{node}}}}}})
			if err != nil {
				return seen{}, err
			}
			if got.Result.Maps()[0].Commit == nil {
				return seen{value: "unequal"}, nil
			}
			return seen{value: fmt.Sprint(got.Result.Maps()[0].Commit.Sum)}, nil
		case "lose":
			_, err := g.speak(ctx, node, &state.DropMap{StageName: r.stage, Map: number, Sum: sum})
			return seen{}, err
		}
		if err := g.Ready(ctx); err != nil {
			return seen{}, err
		}
		is, ok := m.Commit(r.stage.Number, number)
		switch {
		case !ok:
			return seen{}, nil
		case len(is.Nodes) == 0:
			return seen{value: "lost"}, nil
		}
		return seen{value: fmt.Sprint(is.Sum)}, nil
	})
}

// token makes a token, or drops it.
func (r *run) token(c int, g *Group, key, value string, drop bool) {
	hash := r.hash(key)
	a := asked{kind: "token", key: key, value: value}
	var command state.Command = &state.Token{Hash: hash, Expires: 1 << 62, Uses: int(value[0] - '0'), Role: state.Member}
	if drop {
		a.kind, a.value, command = "drop", "", &state.DropToken{Hash: hash}
	}
	r.record(c, a, func(ctx context.Context) (seen, error) {
		_, err := g.Do(ctx, command)
		if errors.Is(err, meta.ErrExist) || errors.Is(err, meta.ErrNotExist) {
			return seen{value: "no"}, nil
		}
		return seen{value: "yes"}, err
	})
}

func (r *run) hash(key string) string { return fmt.Sprintf("%060x%03x%s", r.seed, r.number, key) }

// hasGuests reports whether clients let nodes in that are nowhere. They would be
// given votes where fewer than five others have them.
func (r *run) hasGuests() bool { return len(r.nodes) == 5 }

// guests are the nodes that a client tries to let in with each token. They are
// nowhere; the leader enters them, and never hears of them.
const guests = 2

func (r *run) guest(client int, key string, number int) string {
	return fmt.Sprintf("%012x%02x%s%x", r.number, client, key, number)
}

// redeem lets a node in by a token, or finds that it is in.
func (r *run) redeem(client int, g *Group, key string, number int) {
	a := asked{kind: "redeem", key: key, worker: client*guests + number}
	n := state.Node{ID: r.guest(client, key, number), Host: "guest", Addr: "127.0.0.1:1", Key: "k"}
	r.record(client, a, func(ctx context.Context) (seen, error) {
		_, err := g.command(ctx, &state.Admit{TokenHash: r.hash(key), Node: n, Speaks: state.Version})
		if errors.Is(err, meta.ErrDenied) {
			return seen{value: "no"}, nil
		}
		return seen{value: "yes"}, err
	})
}

// leave takes all guests out again, that the next history may have others.
func (r *run) leave() {
	g, m := r.at(0)
	eventually.True(r.t, "it knows all guests", func() bool { return g.Ready(r.t.Context()) == nil })
	for _, n := range m.Nodes() {
		if n.Host == "guest" {
			r.must(&state.Remove{ID: n.ID})
		}
	}
}

// A stepper is a client as one worker of a queue after the other: when one has died,
// or does not know what became of its last step, the next takes its place.
type stepper struct {
	*run
	client int
	random *rand.Rand
	life   int
	turn   uint64
	held   bool
	lost   bool
}

// slot is the worker's number, and node where it is.
func (w *stepper) slot() int    { return w.life*workers + w.client }
func (w *stepper) node() string { return w.nodes[w.slot()%len(w.nodes)].id }
func (w *stepper) name() string { return fmt.Sprint(w.slot()) }

func (w *stepper) step() {
	if (w.lost || w.random.IntN(6) == 0) && w.life+1 < lives {
		w.die()
	}
	w.take(w.random.Int64N(units))
}

// take finishes what the worker holds, as far as it knows, and takes a unit; -1 for none.
func (w *stepper) take(unit int64) {
	if !w.lost {
		got := w.make(w.held, unit)
		w.lost, w.held = got.unknown, got.step.Unit >= 0
	}
}

// die has the worker leave. What it held is given to others, so it comes too late
// to finish that, and to take anything.
func (w *stepper) die() {
	w.record(w.client, asked{kind: "leave", worker: w.slot()}, func(ctx context.Context) (seen, error) {
		g, _ := w.at(w.random.IntN(len(w.nodes)))
		_, err := g.forNode(ctx, w.node(), &state.LeaveQueue{View: w.queue(), Reader: w.name()})
		return seen{}, err
	})
	w.make(true, w.random.Int64N(units))
	w.life, w.held, w.lost = w.life+1, false, false
}

// make makes a step, and makes it again until its outcome is known.
func (w *stepper) make(finish bool, take int64) seen {
	w.turn++
	s := &state.TakeUnit{View: w.queue(), Reader: w.name(), Node: w.node(), Finish: finish, Take: take, Nonce: w.turn}
	a := asked{kind: "step", worker: w.slot(), finish: finish, take: take}
	return w.record(w.client, a, func(context.Context) (seen, error) {
		var err error
		for range 5 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			g, _ := w.at(w.random.IntN(len(w.nodes)))
			var r state.Result
			r, err = g.forNode(ctx, s.Node, s)
			cancel()
			switch {
			case err == nil:
				return seen{step: *r.Taken()}, nil
			case errors.Is(err, meta.ErrDenied):
				return seen{value: "left"}, nil
			case !errors.Is(err, meta.ErrUnavailable):
				return seen{}, err
			}
		}
		return seen{}, err
	})
}
