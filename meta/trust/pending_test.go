package trust_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta/trust"
)

// A fakeConn only knows whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (f *fakeConn) Close() error {
	f.closed = true
	return nil
}

// Whatever comes and goes, the bounds hold, no connection is closed before its time,
// and one that is turned away is so because of those whose time has not run out.
func TestDoor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		perHost := rapid.IntRange(1, limit).Draw(t, "per host")
		d := trust.NewDoor(limit, perHost, time.Second)
		type pendingConn struct {
			conn  *fakeConn
			host  netip.Addr
			since time.Time
			speak func()
			leave func()
			left  bool
			time  time.Duration // for which it may stay
		}
		var all []*pendingConn
		now := time.Unix(0, 0)
		inside := func(host netip.Addr) (n int) {
			for _, g := range all {
				if !g.left && !g.conn.closed && (g.host == host || !host.IsValid()) {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			},
			"enter": func(t *rapid.T) {
				g := &pendingConn{conn: &fakeConn{}, host: netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 3).Draw(t, "host"))}), since: now}
				same, total := inside(g.host), inside(netip.Addr{})
				var why string
				g.speak, g.leave, why = d.Enter(g.conn, g.host, now)
				g.time = time.Second
				crowd, tired := 0, 0
				for _, other := range all {
					if !other.left && (same < perHost || other.host == g.host) {
						crowd++
						if now.Sub(other.since) >= other.time {
							tired++
						}
					}
				}
				if why != "" && tired > 0 {
					t.Fatalf("refused by %s, while %d of %d stand there for too long", why, tired, crowd)
				}
				if why == "" {
					all = append(all, g)
				} else if same < perHost && total < limit {
					t.Fatalf("refused by %s: %d of the host, %d of all", why, same, total)
				}
				for _, other := range all {
					if other.conn.closed && now.Sub(other.since) < other.time && !other.left {
						t.Fatal("closed before its time")
					}
					other.left = other.left || other.conn.closed
				}
			},
			"speak": func(t *rapid.T) {
				if len(all) > 0 {
					g := rapid.SampledFrom(all).Draw(t, "conn")
					g.speak()
					g.time = 3 * time.Second
				}
			},
			"leave": func(t *rapid.T) {
				if len(all) > 0 {
					g := rapid.SampledFrom(all).Draw(t, "conn")
					g.leave()
					g.left = true
				}
			},
			"": func(t *rapid.T) {
				if n := inside(netip.Addr{}); n != d.Count() || n > limit {
					t.Fatalf("%d inside, %d counted, %d allowed", n, d.Count(), limit)
				}
				for _, g := range all {
					if n := inside(g.host); n > perHost {
						t.Fatalf("%d of %v", n, g.host)
					}
				}
			},
		})
	})
}

func TestDoorShut(t *testing.T) {
	d := trust.NewDoor(2, 2, time.Second)
	inside := &fakeConn{}
	_, leave, _ := d.Enter(inside, netip.Addr{}, time.Unix(0, 0))
	d.Shut()
	leave()
	if _, _, why := d.Enter(&fakeConn{}, netip.Addr{}, time.Unix(0, 0)); !inside.closed || why != "handshakes" || d.Count() != 0 {
		t.Errorf("closed: %v, next one: %q, %d inside", inside.closed, why, d.Count())
	}
}

// One line a second, and it says how many there were without one.
func TestLedger(t *testing.T) {
	var out bytes.Buffer
	l := trust.NewLedger(slog.New(slog.NewTextHandler(&out, nil)))
	from := netip.MustParseAddrPort("10.1.2.3:4567")
	start := time.Unix(1000, 0)
	for i := range 2500 {
		l.Refuse("late", from, errors.New(strings.Repeat("x", 1000)), start.Add(time.Duration(i)*time.Millisecond))
	}
	l.Refuse("late", from, nil, start.Add(-time.Hour)) // the clock was set back: a line, not an hour of silence
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for i, others := range []string{"others=0", "others=999", "others=999", "others=499"} {
		if !strings.Contains(lines[i], others) || !strings.Contains(lines[i], "from=10.1.2.3:4567") || len(lines[i]) > 400 {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
}
