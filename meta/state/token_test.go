package state_test

import (
	"errors"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

func TestTokens(t *testing.T) {
	c := newCluster(t)
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(1)}) // not founded
	c.do(&state.Found{Cluster: state.Cluster{ID: "c", CA: "ca"}})
	c.do(&state.Admit{Node: nodeOf(1)})
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(2)})
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(2)})
	c.refuse(meta.ErrInvalid, &state.Token{Hash: index(1), Expires: c.now, Uses: 1})

	expires := c.now + 60e9
	twice := state.Token{Hash: index(1), Expires: expires, Uses: 2}
	again := twice
	c.do(&again)
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(2)})
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(2)}) // uses up nothing
	again = twice
	c.do(&again) // nor does it come back full
	c.do(&state.Admit{TokenHash: index(1), Node: nodeOf(3)})
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(4)})
	again = twice
	c.do(&again)
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(1), Node: nodeOf(4)})

	c.do(&state.Token{Hash: index(2), Expires: expires, Uses: 1})
	c.do(&state.DropToken{Hash: index(2)})
	c.do(&state.Token{Hash: index(2), Expires: expires, Uses: 1}) // late, and without effect
	if _, err := c.try(&state.Admit{TokenHash: index(2), Node: nodeOf(4)}); !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("with a token that was removed: %v", err)
	}

	c.do(&state.Token{Hash: index(3), Expires: expires, Uses: 1})
	c.now = expires - 1e9
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(3), Node: nodeOf(4)})
	c.now = 0 // a clock that jumps back brings nothing back
	c.refuse(meta.ErrDenied, &state.Admit{TokenHash: index(3), Node: nodeOf(4)})
	if s := c.m.Sizes(); s.Now != c.now || s.Tokens != 0 {
		t.Fatalf("%+v", s)
	}
	c.do(&state.Token{Hash: index(4), Expires: expires, Uses: 1}) // time has come back
	c.do(&state.Admit{TokenHash: index(4), Node: nodeOf(4)})
	c.now = -expires // before there is any
	c.refuse(meta.ErrDenied, &state.Admit{Node: nodeOf(5)})
	if s := c.m.Sizes(); s.Now != 0 {
		t.Fatalf("%+v", s)
	}
}
