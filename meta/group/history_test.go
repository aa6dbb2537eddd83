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
)

var (
	histories = flag.Int("histories", 8, "histories to check for linearizability")
	firstSeed = flag.Uint64("seed", 0, "of the first history; 0 draws one")
)

// perTroop is how many histories one cluster makes.
const perTroop = 4

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
		n.net = p.net
		n.times.dead, n.life = time.Hour, 1 // leases of nodes that are thought dead, or begin anew, would come back
	})
	await(t, "all votes are given", func() bool { return vote(p.nodes, size) })
	t.Cleanup(p.net.heal)
	return p
}

// at is a node as it is now.
func (p *troop) at(i int) (*Group, *state.Machine) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.nodes[i].group, p.nodes[i].machine
}

func (p *troop) restart(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[i].stop()
	p.nodes[i].start(false)
}

// trouble does something to the cluster.
func (p *troop) trouble() {
	i, j := p.random.IntN(len(p.nodes)), p.random.IntN(len(p.nodes))
	switch p.random.IntN(8) {
	case 0, 1:
		p.net.isolate(p.nodes[i].id, p.nodes...)
	case 2:
		p.net.cut(p.nodes[i].id, p.nodes[j].id)
	case 3:
		for k, n := range p.nodes { // the leader, if one is known
			if g, _ := p.at(k); g.Leads() {
				p.net.isolate(n.id, p.nodes...)
			}
		}
	case 4:
		p.net.slow(time.Duration(p.random.IntN(5)) * time.Millisecond)
	case 5:
		p.restart(i)
	default:
		p.net.heal()
	}
}

// history has clients do things at random amid trouble, and checks what they saw.
func (p *troop) history() {
	p.number++
	r := &run{troop: p, dataset: fmt.Sprintf("d%d", p.number), begun: time.Now()}
	p.net.heal()
	r.generation = r.must(&state.PutDataset{Name: r.dataset, Record: []byte(`{}`), Index: fmt.Sprintf("%064x", 1), IndexBytes: 1}).Generation
	r.must(&state.OpenQueue{View: r.queue(), Generation: r.generation, Units: units, Policy: "flow"})
	var clients sync.WaitGroup
	for c := range workers {
		random := rand.New(rand.NewPCG(p.seed, uint64(p.number*100+c)))
		clients.Go(func() { r.client(c, random) })
	}
	for range 5 {
		p.trouble()
		time.Sleep(time.Duration(p.random.IntN(400)) * time.Millisecond)
	}
	p.net.heal()
	clients.Wait()
	r.leave()
	if got := porcupine.CheckOperationsTimeout(model, r.ops, 20*time.Second); got != porcupine.Ok {
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
	actions = 14 // of a client
)

// A run is one history in the making.
type run struct {
	*troop
	dataset    string
	generation uint64
	begun      time.Time
	log        sync.Mutex
	ops        []porcupine.Operation
}

func (r *run) queue() string {
	return r.dataset + "@epoch=0,ranks=4,seed=0,order=full,step=4,tail=drop,assign=local"
}

func (r *run) must(c state.Command) state.Result {
	r.t.Helper()
	var result state.Result
	await(r.t, "a leader executes it", func() bool {
		g, _ := r.at(0)
		got, err := g.Do(r.t.Context(), c)
		if err != nil && !errors.Is(err, meta.ErrUnavailable) {
			r.t.Fatal(err)
		}
		result = got
		return err == nil
	})
	return result
}

// An asked is what a client wants, a seen what it got.
type asked struct {
	kind   string // claim, claims, pin, token, drop, redeem, step
	key    string
	value  string
	worker int
	finish bool
	take   int64
}

type seen struct {
	unknown bool
	value   string
	step    state.Stepped
}

// record does something and writes down when, and what came of it.
func (r *run) record(client int, a asked, do func(ctx context.Context) (seen, error)) seen {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	call := time.Since(r.begun).Nanoseconds()
	s, err := do(ctx)
	back := time.Since(r.begun).Nanoseconds()
	if err != nil && !errors.Is(err, meta.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		r.t.Errorf("%v: %v", a, err)
	}
	if err != nil {
		s, back = seen{unknown: true}, 1<<62
	}
	r.log.Lock()
	defer r.log.Unlock()
	if err == nil || a.kind != "claims" {
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
		switch random.IntN(6) {
		case 0:
			r.record(c, asked{kind: "claim", key: key, value: node}, func(ctx context.Context) (seen, error) {
				// Sent again it may claim again, after another; so it is sent once.
				a, err := g.speak(ctx, node, &state.Claim{Dataset: r.dataset, Generation: r.generation, Ranks: 3, Rank: uint64(key[0] - '0'), Node: node})
				return seen{value: a.Result.Before}, err
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
			r.record(c, asked{kind: "pin", key: key, value: node}, func(ctx context.Context) (seen, error) {
				view := fmt.Sprintf("%s@epoch=%s,ranks=1,seed=0,order=full,step=4,tail=drop,assign=local", r.dataset, key)
				got, err := g.Do(ctx, &state.Pin{View: view, Generation: r.generation, Nodes: state.Runs{{Node: node, Count: 1}}})
				if err != nil {
					return seen{}, err
				}
				return seen{value: got.Plan.Nodes[0].Node}, nil
			})
		case 3:
			r.token(c, g, key, value, random.IntN(4) == 0)
			if r.hasGuests() {
				r.redeem(c, g, key, random.IntN(guests))
			}
		default:
			w.step()
		}
	}
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
	await(r.t, "it knows all guests", func() bool { return g.Ready(r.t.Context()) == nil })
	for _, n := range m.Nodes() {
		if n.Host == "guest" {
			r.must(&state.Remove{ID: n.ID})
		}
	}
}

// A stepper is a client as a worker of a queue. A step whose outcome it does
// not know it makes again until it knows; if it never does it makes no more.
type stepper struct {
	*run
	client int
	random *rand.Rand
	turn   uint64
	held   bool
	lost   bool
}

func (w *stepper) step() {
	if w.lost {
		return
	}
	w.turn++
	s := &state.Step{
		View: w.queue(), Worker: fmt.Sprint(w.client), Node: w.nodes[0].id,
		Finish: w.held, Take: w.random.Int64N(units), Nonce: w.turn,
	}
	a := asked{kind: "step", worker: w.client, finish: s.Finish, take: s.Take}
	got := w.record(w.client, a, func(context.Context) (seen, error) {
		var err error
		for range 5 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			g, _ := w.at(w.random.IntN(len(w.nodes)))
			var r state.Result
			r, err = g.forNode(ctx, s.Node, s)
			cancel()
			if err == nil {
				return seen{step: *r.Step}, nil
			}
			if !errors.Is(err, meta.ErrUnavailable) {
				break
			}
		}
		return seen{}, err
	})
	w.lost, w.held = got.unknown, got.step.Unit >= 0
}

// The model of each key is small and by itself.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := make(map[string][]porcupine.Operation)
		for _, o := range history {
			a := o.Input.(asked)
			kind := map[string]string{"claims": "claim", "drop": "token", "redeem": "token"}[a.kind]
			if kind == "" {
				kind = a.kind
			}
			byKey[kind+a.key] = append(byKey[kind+a.key], o)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return thing{held: [workers]int64{-1, -1, -1, -1, -1}} },
	Step: func(s, in, out any) (bool, any) {
		next, answer := s.(thing).do(in.(asked))
		got := out.(seen)
		return got.unknown || got == answer, next
	},
}

// A thing is what one key is about: a claim and the one before, a plan, a token,
// or a queue. Comparable, as porcupine likes it.
type thing struct {
	now, last string
	dropped   bool
	redeemed  [workers * guests]bool
	done      [units]bool
	held      [workers]int64
}

func (s thing) do(a asked) (thing, seen) {
	switch a.kind {
	case "claim":
		if s.now != a.value {
			s.now, s.last = a.value, s.now
		}
		return s, seen{value: s.last}
	case "claims":
		return s, seen{value: s.now}
	case "pin":
		if s.now == "" {
			s.now = a.value
		}
		return s, seen{value: s.now}
	case "token":
		if s.now == "" {
			s.now = a.value
		}
		return s, yes(s.now == a.value)
	case "drop":
		s.dropped = s.now != ""
		return s, yes(s.dropped)
	case "redeem":
		return s.redeem(a.worker)
	}
	return s.step(a)
}

// redeem lets a guest in who is not in yet, as often as the token says.
func (s thing) redeem(guest int) (thing, seen) {
	left := 0
	if s.now != "" && !s.dropped {
		left = int(s.now[0] - '0')
	}
	for _, used := range s.redeemed {
		if used {
			left--
		}
	}
	if s.redeemed[guest] || left > 0 {
		s.redeemed[guest] = true
	}
	return s, yes(s.redeemed[guest])
}

func yes(is bool) seen {
	if is {
		return seen{value: "yes"}
	}
	return seen{value: "no"}
}

func (s thing) step(a asked) (thing, seen) {
	r := state.Stepped{Unit: -1, Finished: -1}
	if a.finish {
		r.Finished, r.Finish = s.held[a.worker], state.Finished
		switch {
		case r.Finished < 0:
			r.Finish = state.Returned
		case s.done[r.Finished]:
			r.Finish = state.Lost
		default:
			s.done[r.Finished] = true
		}
		s.held[a.worker] = -1
	}
	holders := 0
	for _, unit := range s.held {
		if unit == a.take {
			holders++
		}
	}
	switch {
	case s.done[a.take]:
		r.Refused = state.RefusedDone
	case holders >= 2:
		r.Refused = state.RefusedHeld
	default:
		r.Unit, s.held[a.worker] = a.take, a.take
	}
	return s, seen{step: r}
}
