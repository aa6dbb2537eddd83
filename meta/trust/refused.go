package trust

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A reason is why a connection was not accepted.
type reason string

const (
	accepted           reason = ""
	refusedHost        reason = "host"        // too many of one address without a certificate
	refusedDoor        reason = "handshakes"  // too many without a certificate
	refusedBusy        reason = "connections" // too many at all, or of one node
	refusedLate        reason = "late"        // no handshake in time, or gave way to another
	refusedLeft        reason = "left"        // hung up
	refusedGarbage     reason = "garbage"     // does not speak TLS
	refusedVersion     reason = "version"     // TLS, but not 1.3
	refusedProtocol    reason = "protocol"    // none of ours, or several
	refusedCertificate reason = "certificate" // of another cluster, expired and so on
	refusedHandshake   reason = "handshake"   // anything else that TLS does not like; no certificate at all
	refusedRevoked     reason = "revoked"     // Allowed says no
	refusedUnserved    reason = "unserved"    // no listener
	refusedWaiting     reason = "waiting"     // the listener does not keep up
)

// whyFailed names the reason of a handshake that failed.
func whyFailed(err error) reason {
	var garbage tls.RecordHeaderError
	switch {
	case errors.Is(err, errVersion):
		return refusedVersion
	case errors.Is(err, errProtocol):
		return refusedProtocol
	case errors.Is(err, meta.ErrDenied):
		return refusedCertificate
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		return refusedLate
	case errors.As(err, &garbage):
		return refusedGarbage
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return refusedLeft
	}
	return refusedHandshake
}

// A ledger counts refused connections, and logs a line about them once a second at
// most: a flood of connections must not fill the disk. The lock guards the counts; lines
// are written without it.
type ledger struct {
	log *slog.Logger

	mu struct {
		sync.Mutex
		counts map[reason]uint64
		last   time.Time // of the last line
		silent uint64    // refused since then, without a line
	}
}

const (
	betweenLines = time.Second
	maxErrorText = 200 // some of it is of the client's making
)

func (l *ledger) refuse(why reason, from netip.AddrPort, err error, now time.Time) {
	silent, due := l.count(why, now)
	if !due {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
		text = text[:min(len(text), maxErrorText)]
	}
	l.log.Warn("connection refused", "from", from, "why", string(why), "err", text, "others", silent)
}

func (l *ledger) count(why reason, now time.Time) (silent uint64, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.counts[why]++
	if since := now.Sub(l.mu.last); since >= 0 && since < betweenLines {
		l.mu.silent++
		return 0, false
	}
	silent = l.mu.silent
	l.mu.silent, l.mu.last = 0, now
	return silent, true
}
