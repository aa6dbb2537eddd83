package namenode

import (
	"fmt"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"rankfs/meta"
)

// A cache is a credential cache, the file that kinit writes. The ticket for
// tickets in it is renewed here, in memory: the file is its owner's.
type cache struct {
	path string
	as   stamp               // of the file when it was read
	held *credentials.CCache // nil until it was read
}

// A stamp tells versions of a file apart.
type stamp struct {
	size int64
	time time.Time
}

// maxCache bounds the file of tickets, far above the size of any user's.
const maxCache = 16 << 20

func newCache(path string) *cache {
	if path == "" {
		path = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	return &cache{path: path}
}

func (c *cache) stamp() stamp {
	info, err := os.Stat(c.path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

// changed reports whether the file differs from the one that was read last. A file
// that is gone does not count: the tickets that were read from it may still be used.
func (c *cache) changed() bool {
	now := c.stamp()
	return now != stamp{} && now != c.as
}

// login makes a client of the tickets in the file, read anew if it changed.
func (c *cache) login(conf *config.Config) (krb *client.Client, err error) {
	defer unbroken(c.path, &err)
	if c.held == nil || c.changed() {
		if err := c.read(); err != nil {
			return nil, err
		}
	}
	krb, err = client.NewFromCCache(c.held, conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run kinit", c.path, err)
	}
	if end := c.ticket().EndTime; time.Now().After(end) {
		return nil, fmt.Errorf("%s: its ticket ended at %v; run kinit", c.path, end.Local().Format(time.DateTime))
	}
	return krb, nil
}

func (c *cache) read() error {
	now := c.stamp()
	if now.size > maxCache {
		return fmt.Errorf("%s %w: it has more than %d bytes", c.path, meta.ErrInvalid, maxCache)
	}
	held, err := credentials.LoadCCache(c.path)
	if err != nil {
		return fmt.Errorf("credential cache %s: %s; run kinit, or name a keytab", c.path, meta.WhyNot(err))
	}
	c.held, c.as = held, now
	return nil
}

// granting is the service that tickets are from.
func (c *cache) granting() types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", c.held.GetClientRealm()}}
}

// ticket is the one for tickets.
func (c *cache) ticket() *credentials.Credential {
	t, _ := c.held.GetEntry(c.granting())
	return t
}

// renew has the KDC renew the ticket-granting ticket, if it is renewable, or reads the
// file again if another program has renewed the ticket there.
func (c *cache) renew(krb *client.Client) error {
	if c.changed() {
		return c.read()
	}
	t := c.ticket()
	if time.Now().After(t.RenewTill) {
		return fmt.Errorf("it ends at %v and cannot be renewed; run kinit", t.EndTime.Local().Format(time.DateTime))
	}
	var tgt messages.Ticket
	if err := tgt.Unmarshal(t.Ticket); err != nil {
		return err
	}
	_, rep, err := krb.TGSREQGenerateAndExchange(c.granting(), c.held.GetClientRealm(), tgt, t.Key, true)
	if err != nil {
		return err
	}
	if t.Ticket, err = rep.Ticket.Marshal(); err != nil {
		return err
	}
	got := rep.DecryptedEncPart
	t.Key, t.AuthTime, t.StartTime, t.EndTime, t.RenewTill = got.Key, got.AuthTime, got.StartTime, got.EndTime, got.RenewTill
	return nil
}

// unbroken turns the library's panic at a broken file into an error.
func unbroken(path string, err *error) {
	if recover() != nil {
		*err = fmt.Errorf("%s %w: it cannot be understood; make it anew", path, meta.ErrCorrupt)
	}
}
