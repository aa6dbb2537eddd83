package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// A certificate is this node's own, which says to the others which node it is. It can be
// got again without a replica: a node that was off for longer than it lasts is let in
// nowhere before it has another.
type certificate struct {
	config    *Config
	directory *directory
	standing  *standing
}

// hasExpired reports whether no other node talks to this one any more.
func (c *certificate) hasExpired() bool {
	return !c.config.Now().Before(c.config.Identity.Until())
}

// renew gets another certificate in some way, and takes it.
func (c *certificate) renew(ctx context.Context, get func(ctx context.Context, a application) ([]byte, error)) error {
	request, err := c.config.Identity.Request()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.times.patience)
	defer cancel()
	signed, err := get(ctx, application{Request: request, Addr: c.config.Self.Addr})
	if err != nil {
		return err
	}
	return c.config.Identity.Renew(signed, c.config.Authority, c.config.Now())
}

// reissue is for a certificate that has expired. A node with the authority's key signs
// for itself. Any other applies as a node that joins does, without a token: the cluster
// knows its key.
func (c *certificate) reissue(ctx context.Context, a application) (signed []byte, err error) {
	now, authority := c.config.Now(), c.config.Authority
	if authority.CanSign() {
		r, err := trust.ParseRequest(a.Request)
		if err != nil {
			return nil, err
		}
		return authority.Sign(r, c.config.Identity.Role(), now, 0)
	}
	err = meta.Worded(meta.ErrDenied, "certificate of this node has expired, and no other node is known; remove the state directory and join anew")
	for _, addr := range c.directory.addresses() {
		signed, err = c.reapply(ctx, addr, a, now)
		if c.standing.dialled(err); err == nil || errors.Is(err, trust.ErrRemoved) {
			break
		}
	}
	return signed, err
}

func (c *certificate) reapply(ctx context.Context, addr string, a application, now time.Time) ([]byte, error) {
	conn, _, err := trust.DialJoin(ctx, addr, c.config.Authority.Fingerprint(), c.config.Machine.Admits, now)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return apply(conn, a)
}

// isOutgrown reports whether it is for less than this node may do.
func (c *certificate) isOutgrown() bool {
	n, _ := c.config.Machine.Node(c.config.Self.ID)
	return n.Role == state.Operator && c.config.Identity.Role() == trust.RoleMember
}

// A renewal keeps this node's certificate from expiring, and has it say the node's role.
type renewal struct {
	config      *Config
	standing    *standing
	certificate *certificate
	admission   *admission
}

// run renews the certificate when it is time, or this node may do more, until ctx is done.
func (r *renewal) run(ctx context.Context) {
	said := ""
	for {
		wait, changed := r.config.times.renew, r.config.Machine.ClusterChanged()
		if r.config.Identity.Due(r.config.Now()) || r.certificate.isOutgrown() {
			err := r.once(ctx)
			if err != nil || r.certificate.isOutgrown() {
				wait, changed = r.config.times.look, nil // others may be getting theirs just now
			}
			if now := fmt.Sprint(err); err != nil && ctx.Err() == nil && now != said {
				said = now
				r.config.Log.Warn("certificate not renewed yet", "expires", r.config.Identity.Until(), "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-r.standing.removed:
			return
		case <-changed:
		case <-time.After(wait):
		}
	}
}

func (r *renewal) once(ctx context.Context) error {
	if r.certificate.hasExpired() {
		return r.certificate.renew(ctx, r.certificate.reissue)
	}
	return r.certificate.renew(ctx, r.admission.certify)
}
