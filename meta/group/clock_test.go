package group

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"rankfs/meta"
)

const years = 3 * 365 * 24 * time.Hour

// jump sets the clock of a node ahead of the right time, or behind.
func (n *node) jump(by time.Duration) { n.off.Store(int64(by)) }

// skewed is a cluster of nodes whose clocks jump one by one.
func skewed(t *testing.T, size int) []*node {
	t.Helper()
	nodes := clusterWith(t, size, func(n *node) {
		n.ahead = func() time.Time { return time.Now().Add(time.Duration(n.off.Load())) }
	})
	await(t, "all votes are given", func() bool { return vote(nodes, size) })
	return nodes
}

// A token lasts as long as it was made for, whatever was wrong with the clock of
// who made it, or with the leader's before.
func TestATokenLastsAsLongAsItDoes(t *testing.T) {
	for _, by := range []time.Duration{years, 48 * time.Hour, 0, -48 * time.Hour, -years} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			nodes := skewed(t, 3)
			leader, rest := leading(t, nodes)
			leader.jump(by)
			if err := set(leader, "x", 5*time.Second); err != nil {
				t.Fatal(err)
			}
			leader.jump(0)
			leader, rest = leading(t, nodes)
			rest[0].jump(by)
			token := rest[0].token(2)
			rest[0].jump(0)
			in := newNode(t, 9)
			if err := in.join(leader, token); err != nil {
				t.Errorf("at once: %v", err)
			}
			for _, n := range nodes {
				n.jump(2 * time.Hour)
			}
			if err := newNode(t, 10).join(leader, token); !errors.Is(err, meta.ErrDenied) {
				t.Errorf("after two hours, with a token of one: %v", err)
			}
		})
	}
}
