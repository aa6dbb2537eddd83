package trust

import (
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// PendingConns and Ledger are looked at with a clock of the test's.
type (
	Door   struct{ pendingConns }
	Ledger struct{ ledger }
)

func NewDoor(limit, perHost int, patience time.Duration) *Door {
	return &Door{pendingConns{limit: limit, perHost: perHost, patience: patience}}
}

// Enter returns functions that speak and leave, and why not.
func (d *Door) Enter(c net.Conn, host netip.Addr, now time.Time) (speak, leave func(), why string) {
	g, no := d.enter(c, host, now)
	return func() { d.heard(g) }, func() { d.leave(g) }, string(no)
}

func (d *Door) Count() int { return d.count() }
func (d *Door) Shut()      { d.shut() }

func (d *pendingConns) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mu.conns)
}

func NewLedger(log *slog.Logger) *Ledger {
	l := &Ledger{ledger{log: log}}
	l.mu.counts = make(map[reason]uint64)
	return l
}

func (l *Ledger) Refuse(why string, from netip.AddrPort, err error, now time.Time) {
	l.refuse(reason(why), from, err, now)
}

// DialLimits is how many addresses are being dialled.
func DialLimits(p *Port) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.limits.mu.of)
}

// Stats are counts since the port was opened, and of now.
type Stats struct {
	Refused map[string]uint64 // by reason
	In, Out int               // connections of now: accepted, dialled
	Pending int               // of now, that have shown no certificate
	Waiting int               // of now, for their listener to take them
}

// Stats returns what the port has seen.
func (p *Port) Stats() Stats {
	s := Stats{Refused: p.ledger.snapshot(), Pending: p.pending.count()}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.In, s.Out = p.mu.in, p.mu.out
	for _, l := range p.mu.listeners {
		s.Waiting += l.waiting
	}
	return s
}

func (l *ledger) snapshot() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]uint64, len(l.mu.counts))
	for why, n := range l.mu.counts {
		counts[string(why)] = n
	}
	return counts
}
