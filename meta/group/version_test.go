package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// Three nodes of the release before are upgraded one after the other, and have a
// leader and take commands all the while. Nothing newer is sent until the last is.
func TestRollingUpgrade(t *testing.T) {
	logged := new(pages)
	nodes := clusterWith(t, 3, func(n *node) { n.speaks, n.logged = state.Oldest, logged })
	eventually.True(t, "three voters", func() bool { return vote(nodes, 3) })
	names := []string{"0", "1", "2"}
	for i, n := range nodes {
		if err := put(n, "before"+names[i]); err != nil {
			t.Fatal(err)
		}
		n.stop()
		n.speaks = 0
		n.start(false)
		if err := n.group.Begun(t.Context()); err != nil {
			t.Fatal(err)
		}
		for j, m := range nodes {
			if err := put(m, "after"+names[i]+names[j]); err != nil {
				t.Fatal(err)
			}
			if version := m.machine.Version(); version != state.Oldest && i < 2 {
				t.Fatalf("node %d is upgraded, and commands are of version %d", i, version)
			}
		}
		if _, err := nodes[0].group.MakeToken(t.Context(), time.Hour, 1, state.Member); i < 2 && !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("a token for a member, of whose role a node of the release before knows nothing: %v", err)
		}
	}
	for _, n := range nodes {
		eventually.True(t, "the cluster has gone over", func() bool { return n.machine.Version() == state.Version })
		if err := n.machine.Err(); err != nil {
			t.Error(err)
		}
		eventually.True(t, "it has all datasets", func() bool { return len(n.machine.Datasets()) == 12 })
	}
	logged.tells(t, "tokens made before", true)
	joined(t, nodes[1], 5, state.Member)
	if err := put(nodes[2], "last"); err != nil {
		t.Error(err)
	}
}

// pages are what some nodes log. The lock guards the text.
type pages struct {
	mu struct {
		sync.Mutex
		text strings.Builder
	}
}

// Write implements io.Writer.
func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.text.Write(b)
}

// tells waits until it is logged that the cluster has gone over, and checks whether something
// is told with that.
func (p *pages) tells(t *testing.T, what string, want bool) {
	t.Helper()
	var line string
	eventually.True(t, "it is logged that the cluster has gone over", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, rest, found := strings.Cut(p.mu.text.String(), wentOver(nil))
		line, _, _ = strings.Cut(rest, "\n")
		return found
	})
	if strings.Contains(line, what) != want {
		t.Errorf("the leader logs %q; %q is to be in it: %v", line, what, want)
	}
}

// The release after this one goes over as this one did, but what that has brought is not
// done once more: a member stays a member, and a token lets nodes in.
func TestUpgradeToTheVersionAfterThisOne(t *testing.T) {
	const next = state.Version + 1
	logged := new(pages)
	nodes := clusterWith(t, 1, func(n *node) { n.logged = logged })
	nodes = append(nodes, joined(t, nodes[0], 1, state.Operator), joined(t, nodes[0], 2, state.Member))
	nodes[1].logged, nodes[2].logged = logged, logged
	for i, n := range nodes {
		eventually.True(t, "it knows of all, and of a token that no node has used", func() bool {
			return len(n.machine.Nodes()) == 3 && len(n.machine.Tokens()) == 1
		})
		if version := n.machine.Version(); version != state.Version {
			t.Fatalf("node %d is upgraded, and commands are of version %d", i, version)
		}
		n.stop()
		n.speaks = next
		n.start(false)
		if err := n.group.Begun(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		eventually.True(t, "the cluster has gone over", func() bool { return n.machine.Version() == next })
		if err := put(n, fmt.Sprint(i)); err != nil {
			t.Errorf("node %d, which is told of version %d: %v", i, next, err)
		}
		for node, want := range map[*node]state.Role{nodes[0]: state.Operator, nodes[1]: state.Operator, nodes[2]: state.Member} {
			if is, _ := n.machine.Node(node.id); is.Role != want {
				t.Errorf("for node %d a node is %q, not %q", i, is.Role, want)
			}
		}
		if len(n.machine.Tokens()) != 1 || n.machine.Err() != nil {
			t.Errorf("node %d: tokens %+v, %v", i, n.machine.Tokens(), n.machine.Err())
		}
	}
	if _, err := nodes[2].group.MakeToken(t.Context(), time.Hour, 1, state.Member); !errors.Is(err, meta.ErrDenied) {
		t.Errorf("a member makes a token: %v", err)
	}
	logged.tells(t, "tokens", false)
}

// warned reports whether the leader has logged something that begins with what, and still
// holds.
func (g *Group) warned(what string) bool {
	w := g.membership.warnings
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.mu.said {
		if strings.HasPrefix(key, what) {
			return true
		}
	}
	return false
}

// A node that is away may be of the release before, and is waited for.
func TestUpgradeWaitsForANodeThatIsAway(t *testing.T) {
	nodes := clusterWith(t, 3, func(n *node) { n.speaks = state.Oldest })
	eventually.True(t, "three voters", func() bool { return vote(nodes, 3) })
	for _, n := range nodes {
		n.stop()
	}
	for _, n := range nodes[:2] {
		n.speaks = 0
		n.start(false)
	}
	if err := put(nodes[0], "d"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it is said who is waited for", func() bool {
		return nodes[0].group.warned("the cluster does not take commands") || nodes[1].group.warned("the cluster does not take commands")
	})
	if version := nodes[0].machine.Version(); version != state.Oldest {
		t.Errorf("version %d", version)
	}
	nodes[2].speaks = 0
	nodes[2].start(false)
	eventually.True(t, "the cluster has gone over", func() bool { return nodes[2].machine.Version() == state.Version })
}

// A state directory of the release before is taken on, log and snapshot.
func TestStateOfTheReleaseBefore(t *testing.T) {
	n := newNode(t, 0)
	if out, err := exec.Command("tar", "xzf", "testdata/release3.tar.gz", "-C", n.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.take(t)
	eventually.True(t, "it has what there was", func() bool { return len(n.machine.Datasets()) == 2 && n.machine.Setting("k") == "v" })
	eventually.True(t, "it has gone over", func() bool { return n.machine.Version() == state.Version })
	if self, ok := n.machine.Node(n.id); !ok || self.Role != state.Operator {
		t.Errorf("it is %+v", self)
	}
	if len(n.machine.Tokens()) != 0 {
		t.Error("tokens of before still let nodes in")
	}
	if err := put(n, "new"); err != nil {
		t.Fatal(err)
	}
	n.stop()
	// What it has left now is not for the release before.
	n.speaks = state.Oldest
	err := n.try(false)
	if err == nil {
		err = n.group.Begun(t.Context())
	}
	if !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "older than the cluster's: upgrade it") {
		t.Errorf("an older release goes on with it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "raft", "damaged")); err == nil {
		t.Error("what it cannot read it takes for damaged")
	}
}

// A node that has just joined, and does not know yet which commands its cluster
// takes, has those executed that it could not even have said.
func TestACommandOfANodeThatHasJustJoined(t *testing.T) {
	nodes, w := voting(t, 3)
	w.slow(20 * time.Millisecond) // between hearing of a leader and having its log
	for i := range 3 {
		n := newNode(t, 7+i)
		n.net, n.times.pause = w, 100*time.Microsecond
		if err := n.join(nodes[0], nodes[0].token(1)); err != nil {
			t.Fatal(err)
		}
		hash := fmt.Sprintf("%064x", i)
		if err := n.asks(&state.Token{Hash: hash, Expires: 1 << 62, Uses: 1, Role: state.Member}); err != nil {
			t.Fatal(err)
		}
		if _, ok := n.machine.Token(hash); !ok {
			t.Error("the token is not there")
		}
	}
}

// What nodes say to one another, in full, as this release writes it; and how a later
// one might, that says more.
func TestFormOfCalls(t *testing.T) {
	generation, err := decode[state.Result]([]byte(`{"Generation":2}`))
	if err != nil || generation.Generation() != 2 {
		t.Fatal(generation, err)
	}
	for name, tt := range map[string]struct {
		said any
		text string
		into func(text []byte) (any, error)
	}{
		"hello":                    {hello{Addr: "h:1", Life: 7, Deaf: true, Lost: true}, `{"addr":"h:1","life":7,"deaf":true,"lost":true}`, reads[hello]},
		"hello of one that hears":  {hello{Addr: "h:1", Life: 7}, `{"addr":"h:1","life":7}`, reads[hello]},
		"welcome":                  {welcome{Leader: "l", Addr: "h:2", Applied: 9, Wait: true}, `{"leader":"l","addr":"h:2","applied":9,"wait":true}`, reads[welcome]},
		"heartbeat":                {heartbeat{Speaks: 4, Applied: 9, Signs: true, Clock: 5}, `{"speaks":4,"applied":9,"signs":true,"clock":5}`, reads[heartbeat]},
		"heartbeat with who leads": {heartbeat{Applied: 9, Clock: 5, Leader: "l"}, `{"applied":9,"clock":5,"leader":"l"}`, reads[heartbeat]},
		// What the release before reads, which takes no more.
		"application with an old token": {application{Request: []byte{1}, Addr: "h:1", Token: "t"},
			`{"request":"AQ==","addr":"h:1","token":"t"}`, reads[application]},
		"application": {application{Request: []byte{1}, Addr: "h:1", Token: "t", Speaks: 4},
			`{"request":"AQ==","addr":"h:1","token":"t","speaks":4}`, reads[application]},
		"applied": {applied{Index: 3, Result: generation}, `{"index":3,"result":{"Generation":2}}`, reads[applied]},
	} {
		text, err := json.Marshal(tt.said)
		if err != nil || string(text) != tt.text {
			t.Errorf("%s: %s (%v)", name, text, err)
		}
		more := strings.TrimSuffix(tt.text, "}") + `,"later":{"than":[1,2]}}`
		if got, err := tt.into([]byte(more)); err != nil || !reflect.DeepEqual(got, tt.said) {
			t.Errorf("%s of a later release: %+v (%v)", name, got, err)
		}
	}
}

func reads[T any](text []byte) (any, error) { return decode[T](text) }

// A node of a later release, which says more than this one knows, begins and asks to
// be let in as others do.
func TestCallsOfALaterRelease(t *testing.T) {
	nodes, _ := voting(t, 3)
	n := nodes[1]
	says := func(name string, request, answer any) error {
		return onceLed(t, func() error { return n.group.AskLeader(t.Context(), name, request, answer) })
	}
	var w welcome
	later := map[string]any{"addr": n.addr, "life": n.group.config.Self.Life, "later": []int{1}}
	if err := says(callHello, later, &w); err != nil || w == (welcome{}) {
		t.Errorf("it begins: %+v, %v", w, err)
	}
	request, err := n.identity.Request()
	if err != nil {
		t.Fatal(err)
	}
	var certificate []byte
	later = map[string]any{"request": request, "addr": n.addr, "later": "x"}
	if err := says(callAdmit, later, &certificate); err != nil || len(certificate) == 0 {
		t.Errorf("its certificate is renewed: %v", err)
	}
}

// take starts a node on a log that was written before, with an authority of its own.
func (n *node) take(t *testing.T) {
	t.Helper()
	n.certify(t)
	n.start(false)
}
