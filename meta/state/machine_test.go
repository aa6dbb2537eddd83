package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A cluster is a machine and the log that was applied to it.
type cluster struct {
	t     testing.TB
	m     *state.Machine
	index uint64
	now   int64
}

func newCluster(t testing.TB) *cluster { return &cluster{t: t, m: state.New()} }

// try applies a command a second later than the last.
func (c *cluster) try(command state.Command) (state.Result, error) {
	c.t.Helper()
	c.now += 1e9
	state.Stamp(command, c.now)
	data, err := state.Encode(command)
	if err != nil {
		return state.Result{}, err
	}
	c.index++
	return c.m.Apply(c.index, data)
}

func (c *cluster) do(command state.Command) state.Result {
	c.t.Helper()
	r, err := c.try(command)
	if err != nil {
		c.t.Fatalf("%T%.300s: %v", command, fmt.Sprintf("%+v", command), err)
	}
	return r
}

// refuse applies a command that must fail with that error, and advise.
func (c *cluster) refuse(want error, command state.Command) {
	c.t.Helper()
	if r, err := c.try(command); !errors.Is(err, want) {
		c.t.Fatalf("%T%.300s: got %s, %v; want %v", command, fmt.Sprintf("%+v", command), text(r), err, want)
	}
}

func id(n int) string    { return fmt.Sprintf("%016x", n) }
func index(n int) string { return fmt.Sprintf("%064x", n) }

func nodeOf(n int) state.Node {
	return state.Node{ID: id(n), Host: "h", Addr: "h:1", Key: fmt.Sprint("key", n)}
}

// founded has so many nodes, let in by one token, and one dataset, "d".
func founded(t testing.TB, nodes int) *cluster {
	c := newCluster(t)
	c.do(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}})
	c.do(&state.Token{Hash: index(1), Expires: 1 << 62, Uses: state.MaxUses})
	for n := range nodes {
		c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(n + 1)})
	}
	c.do(&state.PutDataset{Name: "d", Registration: json.RawMessage(`{"a":1}`), Index: index(1), IndexBytes: 10})
	return c
}

func view(epoch, ranks int) string {
	return fmt.Sprintf("d@epoch=%d,ranks=%d,seed=0,order=full,step=1024,tail=keep,assign=local", epoch, ranks)
}

func TestUnknownCommand(t *testing.T) {
	good, err := state.Encode(&state.Setting{Key: "k", Value: "v"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data string
		want error
	}{
		{"a later version", string([]byte{state.Version + 1}) + "\x01{}", meta.ErrUnavailable},
		{"an unknown kind, signed", "\x04\xff{}", meta.ErrUnavailable},
		{"without a signer", "\x04\x14{\"Key\":\"k\",\"Value\":\"v\"}", meta.ErrCorrupt},
		{"signed before that was so", "\x03\x14{\"By\":\"0000000000000001\",\"Key\":\"k\",\"Value\":\"v\"}", meta.ErrCorrupt},
		{"a role before there were any", "\x03\x02{\"Role\":\"member\"}", meta.ErrCorrupt},
		{"an unknown kind", "\x03\xff{}", meta.ErrUnavailable},
		{"no kind", "\x03\x00{}", meta.ErrUnavailable},
		{"an unknown field", "\x03\x01{\"Color\":1}", meta.ErrCorrupt},
		{"nothing", "", meta.ErrCorrupt},
		{"half a command", string(good[:len(good)-3]), meta.ErrCorrupt},
		{"two commands", string(good) + "{}", meta.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := founded(t, 1)
			if _, err := c.m.Apply(100, []byte(tt.data)); !errors.Is(err, tt.want) {
				t.Fatalf("got %v", err)
			}
			before := c.m.Sizes()
			if _, err := c.m.Apply(101, good); !errors.Is(err, tt.want) || c.m.Err() == nil {
				t.Fatalf("the next command: %v, %v", err, c.m.Err())
			}
			if c.m.Sizes() != before || len(c.m.Nodes()) != 1 {
				t.Fatal("a poisoned machine has changed")
			}
			if tt.want == meta.ErrUnavailable && !strings.Contains(c.m.Err().Error(), "upgrade") {
				t.Fatalf("no advice: %v", c.m.Err())
			}
		})
	}
}
