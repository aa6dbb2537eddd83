package meta_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
)

func TestSameHost(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"node1", "node1", true},
		{"node1", "NODE1", true},
		{"node1.", "node1", true},
		{"node1", "node1.example.com", true},
		{"Node1", "node1.Example.COM.", true},
		{"node1.example.com", "node1.example.com.", true},
		{"node1.example.com", "node1.example.org", false},
		{"node1.example.com", "node1.example", false},
		{"node1", "node10", false},
		{"node1", "node10.example.com", false},
		{"example", "node1.example.com", false},
		{"", "", false},
		{"", "node1", false},
		{".", ".", false},
		{"localhost", "localhost", true},
		{"localhost", "localhost.localdomain", false},
		{"localhost", "node1", false},
		{"LOCALHOST", "localhost.example.com", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10", false},
		{"10", "10.0.0.1", false},
		{"10.0.0.1", "10.example.com", false},
		{"::1", "0:0:0:0:0:0:0:1", true},
		{"fe80::1", "FE80::0001", true},
		{"::ffff:10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"::1", "localhost", false},
		{"127.0.0.1", "localhost", false},
		{"node1", "node1.5", true}, // no address
	} {
		if meta.SameHost(row.a, row.b) != row.same || meta.SameHost(row.b, row.a) != row.same {
			t.Errorf("SameHost(%q, %q) is not %v both ways", row.a, row.b, row.same)
		}
	}
}

func TestIsHost(t *testing.T) {
	label := strings.Repeat("a", 49)
	long := strings.Repeat(label+".", 5) + "aaa" // 253 bytes
	for name, is := range map[string]bool{
		"node1": true, "Node_1": true, "node1.example.com": true, "node1.": true, "a-b": true, "7": true,
		"10.0.0.1": true, "::1": true, "fe80::1%eth0": true, long: true,
		"": false, ".": false, "..": false, "a..b": false, ".a": false, "a..": false, "-x": false, "a.-b": false,
		long + "a": false, "two words": false, "a/b": false, "a,b": false, "é": false,
		"node1:7420": false, "a%b": false, ":": false, "10.0.0.1:7420": false, "fe80::1%a b": false,
	} {
		if meta.IsHost(name) != is {
			t.Errorf("IsHost(%q) is not %v", name, is)
		}
	}
}

// A table of hosts finds what SameHost would.
func TestHosts(t *testing.T) {
	names := rapid.SampledFrom([]string{
		"a", "A.", "a.x", "a.X.", "a.y", "b", "b.x", "localhost", "localhost.x", "10.0.0.1", "::ffff:10.0.0.1", "10", "::1", "0::1", "",
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(names, 0, 8).Draw(t, "hosts")
		name := names.Draw(t, "name")
		var hosts meta.Hosts[int]
		var any, best []int
		for i, host := range all {
			hosts.Add(host, i)
			if !meta.SameHost(host, name) {
				continue
			}
			any = append(any, i)
			if full := strings.Contains(strings.TrimSuffix(name, "."), "."); full == strings.Contains(strings.TrimSuffix(host, "."), ".") {
				best = append(best, i)
			}
		}
		if best != nil {
			any = best
		}
		if got := hosts.Find(name); !slices.Equal(got, any) {
			t.Fatalf("%q among %q: %v, want %v", name, all, got, any)
		}
	})
}

func FuzzSameHost(f *testing.F) {
	f.Add("node1", "node1.example.com")
	f.Add("::1", ".")
	f.Fuzz(func(t *testing.T, a, b string) {
		if meta.SameHost(a, b) != meta.SameHost(b, a) {
			t.Errorf("SameHost(%q, %q) depends on the order", a, b)
		}
		var hosts meta.Hosts[bool]
		hosts.Add(a, true)
		if (hosts.Find(b) != nil) != meta.SameHost(a, b) {
			t.Errorf("Find(%q) of %q", b, a)
		}
	})
}
