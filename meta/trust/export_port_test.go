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

// Enter returns why not, and a function that leaves.
func (d *Door) Enter(c net.Conn, host netip.Addr, now time.Time) (func(), string) {
	g, why := d.enter(c, host, now)
	return func() { d.leave(g) }, string(why)
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
