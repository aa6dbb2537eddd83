package namenode

import (
	"context"
	"log/slog"
	"sync"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
)

// tickets gets the Kerberos tickets that authenticate this client to a namenode. The
// library that asks the KDC knows no contexts but gives up by itself, after 5 s for
// each KDC; so a goroutine of its own calls it, and a caller that wants a ticket
// waits for that until its context ends.
type tickets struct {
	Kerberos
	log *slog.Logger
	ctx context.Context
	wg  *sync.WaitGroup

	lock  chan struct{}  // full while it is held: its holder may use the fields below
	conf  *config.Config // of the last login
	krb   *client.Client // nil until needed
	cache *cache         // nil with a keytab
	kept  bool           // the cache's ticket is being renewed

	none trouble // when a proof was last wanted
}

func newTickets(ctx context.Context, c Config, wg *sync.WaitGroup) *tickets {
	t := &tickets{Kerberos: *c.Kerberos, log: c.Log, ctx: ctx, wg: wg, lock: make(chan struct{}, 1)}
	if t.Conf == "" {
		t.Conf = "/etc/krb5.conf"
	}
	if t.Keytab == "" {
		t.cache = newCache(t.Cache)
	}
	return t
}

// forget ends the goroutines of the library. No call may be under way.
func (t *tickets) forget() {
	if t.krb != nil {
		t.krb.Destroy()
		t.krb = nil
	}
}
