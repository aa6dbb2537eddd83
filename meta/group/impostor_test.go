package group

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// A thief of the authority's key can make a certificate in the name of a node. With
// another key than the node was admitted with it opens no port, and no node takes its holder
// for that node, nor believes it that a node was removed.
func TestAnImpostorHasAnotherKey(t *testing.T) {
	nodes, _ := voting(t, 3)
	leader, rest := leading(t, nodes)
	victim, other := rest[0], rest[1]
	a := leader.group.config.Authority
	forged, err := trust.OpenIdentity(t.TempDir(), victim.id, "host")
	if err != nil {
		t.Fatal(err)
	}
	request, err := forged.Request()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.Sign(r, trust.RoleOperator, time.Now(), 0)
	if err == nil {
		err = forged.Renew(certificate, a, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	var refuses atomic.Bool
	port, err := trust.Open(t.Context(), trust.Config{
		Authority: a, Identity: forged, Allowed: func(string, string) bool { return !refuses.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	for _, n := range []*node{leader, other} {
		eventually.True(t, "it knows the node", func() bool { _, ok := n.machine.Node(victim.id); return ok })
		for _, protocol := range []trust.Protocol{trust.Raft, trust.Call, trust.Data} {
			c, err := port.Dial(t.Context(), n.addr, n.id, protocol)
			if err == nil {
				c.Close()
			}
			if !errors.Is(err, meta.ErrDenied) {
				t.Errorf("it was let in for %s: %v", protocol, err)
			}
		}
	}
	listener := port.Listener(trust.Call)
	defer listener.Close()
	for range 2 {
		_, err = other.port.Dial(t.Context(), port.Addr().String(), victim.id, trust.Call)
		if !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), "another key than it joined with") {
			t.Errorf("it was taken for the node: %v", err)
		}
		refuses.Store(true) // then it says that the other was removed
	}
	gate := port.Listener(trust.Join)
	var answered sync.WaitGroup
	answered.Go(func() {
		for {
			c, err := gate.Accept()
			if err != nil {
				return
			}
			json.NewEncoder(c).Encode(admittance{Removed: true})
			c.Close()
		}
	})
	defer answered.Wait()
	defer gate.Close()
	_, err = other.group.renewal.certificate.reapply(t.Context(), port.Addr().String(), application{}, time.Now())
	if !errors.Is(err, meta.ErrDenied) || !strings.Contains(err.Error(), "another key than it joined with") {
		t.Errorf("it was believed that the node was removed: %v", err)
	}
	c, err := victim.port.Dial(t.Context(), other.addr, other.id, trust.Call)
	if err != nil {
		t.Fatalf("the node itself is refused: %v", err)
	}
	c.Close()
}
