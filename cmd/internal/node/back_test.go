package node

import (
	"testing"

	"rankfs/meta/state"
)

func TestIsBack(t *testing.T) {
	up := state.Node{ID: "a", Life: 1, Up: true}
	down, next, full := up, up, up
	down.Up, next.Life, full.PoolFull = false, 2, true
	for _, tt := range []struct {
		name   string
		was, n state.Node
		want   bool
	}{
		{"a node that was not known", state.Node{}, up, false},
		{"up as before", up, full, false},
		{"down now", up, down, false},
		{"up again", down, up, true},
		{"another daemon, without having been down", up, next, true},
	} {
		if got := isBack(tt.was, tt.n); got != tt.want {
			t.Errorf("%s: back %v", tt.name, got)
		}
	}
}
