package datanode_test

import (
	"net/netip"
	"testing"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/namenode"
)

// Of several replicas the one on this host is asked, however its datanode and this
// host are called.
func TestLocalByAnyName(t *testing.T) {
	here := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	for _, row := range []struct {
		host, name, addr string
		local            bool
	}{
		{"node1", "node1", "10.9.9.9:9866", true},
		{"node1", "node1.example.com", "10.9.9.9:9866", true},
		{"node1.example.com", "NODE1", "10.9.9.9:9866", true},
		{"node1.example.com", "node1.example.com.", "10.9.9.9:9866", true},
		{"node1.example.com", "node1.example.org", "10.9.9.9:9866", false},
		{"node1", "node2", "10.9.9.9:9866", false},
		{"node1", "node2", "10.0.0.1:9866", true}, // it listens here
		{"node1", "node2", "[fd00:0::1]:9866", true},
		{"", "", "10.9.9.9:9866", false},
		{"node1", "node2", "nonsense", false},
	} {
		c := datanode.New(datanode.Config{Host: row.host, Here: here})
		replicas := []namenode.Replica{{ID: "far", Host: "far", Addr: "10.1.1.1:9866"}, {ID: "this", Host: row.name, Addr: row.addr}}
		if picked := c.Pick(replicas); (picked.ID == "this") != row.local {
			t.Errorf("on %q, a replica of %q at %s: %s is asked", row.host, row.name, row.addr, picked.ID)
		}
	}
}

// Of datanodes that are far the one is asked from which fewest streams come, among equals the
// namenode's first; one that is here is asked however many do.
func TestFewestStreams(t *testing.T) {
	c := datanode.New(datanode.Config{Host: "here"})
	far := []namenode.Replica{{ID: "x", Host: "x"}, {ID: "y", Host: "y"}, {ID: "z", Host: "z"}}
	picks := func(replicas ...namenode.Replica) (order string) {
		for range 4 {
			order += c.Pick(replicas).ID
		}
		return order
	}
	if got := picks(far...); got != "xyzx" {
		t.Errorf("streams come from %s", got)
	}
	if got := picks(far[0], far[1]); got != "yxyx" { // 2, 1
		t.Errorf("further streams come from %s", got)
	}
	if got := picks(far[2], namenode.Replica{ID: "h", Host: "here"}); got != "hhhh" {
		t.Errorf("with one that is here they come from %s", got)
	}
}
