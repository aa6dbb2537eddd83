package nodes_test

import (
	"fmt"
	"strings"

	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// large is how long an attempt is that is copied by a slow link for a while.
const large, slowly = 16 << 20, 1 << 20

// lay writes an attempt of so many bytes, of which no two megabytes are alike.
func (g stage) lay(n *daemon.Place, number int) {
	g.t.Helper()
	g.sh(n, `seq -f "$2 %.0f" 9999999 | head -c "$3" > "$1/.map-$2.0"`, mapName(number), fmt.Sprint(large))
}

// sum is that of a file of the stage on a node.
func (g stage) sum(n *daemon.Place, file string) string {
	g.t.Helper()
	return g.sh(n, `sha256sum < "$1/$2"`, file)
}

// layHollow is lay of an attempt of which nothing goes ahead: at its beginning it has a hole,
// of more than the huge page that memory may have for what follows.
func (g stage) layHollow(n *daemon.Place, number int) {
	g.t.Helper()
	const hole = 4 << 20
	g.sh(n, `truncate -s "$4" "$1/.map-$2.0"; seq -f "$2 %.0f" 9999999 | head -c "$3" >> "$1/.map-$2.0"`, mapName(number), fmt.Sprint(large-hole), fmt.Sprint(hole))
}

// moved is how many bytes a host was sent, and has sent, on its link.
func (m *team) moved(n *daemon.Place) (in, out int64) {
	m.t.Helper()
	for line := range strings.Lines(n.Must("cat", "/proc/net/dev")) {
		if name, numbers, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "eth0" {
			f := strings.Fields(numbers)
			_, err := fmt.Sscan(f[0]+" "+f[8], &in, &out)
			m.must(err)
			return in, out
		}
	}
	m.t.Fatalf("%s has no link", n.Host.Name)
	return 0, 0
}

// underWay does something with the link of a node slow, and waits until much has gone by
// that, in or out: most of it is still to go. It returns the other node that has most of
// it, and what it came to once the link is as before.
func (m *team) underWay(n *daemon.Place, out bool, do func() error) (other *daemon.Place, ended func() error) {
	m.t.Helper()
	way := func(of *daemon.Place, out bool) int64 {
		received, sent := m.moved(of)
		if out {
			return sent
		}
		return received
	}
	before := make(map[*daemon.Place]int64)
	for _, one := range m.Nodes {
		before[one] = way(one, out == (one == n))
	}
	m.must(n.Host.LinkRate(slowly))
	end := make(chan error, 1)
	go func() { end <- do() }()
	eventually.Within(m.t, patience, "much has gone by the link of "+n.Host.Name, func() bool { return way(n, out) > before[n]+slowly/2 })
	most := int64(0)
	for _, one := range m.Nodes {
		if more := way(one, out == (one == n)) - before[one]; one != n && more > most {
			other, most = one, more
		}
	}
	select {
	case err := <-end:
		m.t.Fatalf("it has ended already: %v", err)
	default:
	}
	return other, func() error {
		m.t.Helper()
		m.must(n.Host.LinkRate(0))
		return <-end
	}
}
