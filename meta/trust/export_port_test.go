package trust

import (
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Door and Ledger are looked at with a clock of the test's.
type (
	Door   struct{ door }
	Ledger struct{ ledger }
)

func NewDoor(limit, perHost int, patience time.Duration) *Door {
	return &Door{door{limit: limit, perHost: perHost, patience: patience}}
}

// Enter returns functions that speak and leave, and why not.
func (d *Door) Enter(c net.Conn, host netip.Addr, now time.Time) (speak, leave func(), why string) {
	g, no := d.enter(c, host, now)
	return func() { d.heard(g) }, func() { d.leave(g) }, string(no)
}

func (d *Door) Count() int { return d.count() }
func (d *Door) Shut()      { d.shut() }

func NewLedger(log *slog.Logger) *Ledger {
	l := &Ledger{ledger{log: log}}
	l.mu.counts = make(map[reason]uint64)
	return l
}

func (l *Ledger) Refuse(why string, from netip.AddrPort, err error, now time.Time) {
	l.refuse(reason(why), from, err, now)
}

// Lanes is how many addresses are being dialled.
func Lanes(p *Port) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.lanes)
}
